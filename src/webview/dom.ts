/** Making elements without a framework. */
import { type IconName, icon } from './icons.ts';
import { inlineParts } from './questionText.ts';

type Child = Node | string;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string>,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A sentence of the engine or the host, with what stands between backticks as code. */
export function sentence(text: string): Child[] {
  return inlineParts(text).map((part) => (part.kind === 'code' ? element('code', {}, part.text) : part.text));
}

export function button(label: string, attributes: Record<string, string>, onClick: () => void): HTMLButtonElement {
  const made = element('button', { type: 'button', ...attributes }, label);
  made.addEventListener('click', onClick);
  return made;
}

/** A button that shows an icon and is named by its label. */
export function iconButton(name: IconName, label: string, className: string, onClick: () => void): HTMLButtonElement {
  const made = button('', { class: `icon ${className}`.trim(), title: label, 'aria-label': label }, onClick);
  made.append(icon(name));
  return made;
}

export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...children);
}

/** Shows for a moment that something was copied. */
export function confirmCopy(copy: HTMLButtonElement, copied: string): void {
  copy.replaceChildren(icon('check'));
  copy.title = copied;
  setTimeout(() => {
    copy.replaceChildren(icon('copy'));
    // Not the title of before: a second click comes while that says "Copied".
    copy.title = copy.getAttribute('aria-label') ?? '';
  }, 1500);
}

/** Makes `change`; where that takes away the focused element within `root`, `next` moves the focus on, which would be lost otherwise. */
export function keepingFocus(root: Element, change: () => void, next: (lost: Element) => void): void {
  const focused = document.activeElement;
  const within = focused !== null && root.contains(focused);
  change();
  if (within && !focused.checkVisibility()) next(focused);
}

/** As high as what is in it. */
export function fitHeight(area: HTMLTextAreaElement): void {
  area.style.height = 'auto';
  area.style.height = `${area.scrollHeight}px`;
}
