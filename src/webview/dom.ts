/** Helpers to create elements without a framework. */
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

/** A message of the engine or the host, with text between backticks shown as code. */
export function sentence(text: string): Child[] {
  return inlineParts(text).map((part) => (part.kind === 'code' ? element('code', {}, part.text) : part.text));
}

export function button(label: string, attributes: Record<string, string>, onClick: () => void): HTMLButtonElement {
  const made = element('button', { type: 'button', ...attributes }, label);
  made.addEventListener('click', onClick);
  return made;
}

/** A button that shows an icon and has a label. */
export function iconButton(name: IconName, label: string, className: string, onClick: () => void): HTMLButtonElement {
  const made = button('', { class: `icon ${className}`.trim(), title: label, 'aria-label': label }, onClick);
  made.append(icon(name));
  return made;
}

export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...children);
}

/** Shows briefly that something was copied. */
export function confirmCopy(copy: HTMLButtonElement, copied: string): void {
  copy.replaceChildren(icon('check'));
  copy.title = copied;
  setTimeout(() => {
    copy.replaceChildren(icon('copy'));
    // Not the previous title: it may say "Copied" at a second click.
    copy.title = copy.getAttribute('aria-label') ?? '';
  }, 1500);
}

/** Runs `change`. If that removes the focused element within `root`, `next` moves the focus on. */
export function keepingFocus(root: Element, change: () => void, next: (lost: Element) => void): void {
  const focused = document.activeElement;
  const within = focused !== null && root.contains(focused);
  change();
  if (within && !focused.checkVisibility()) next(focused);
}

/** Sets the height to that of the content. */
export function fitHeight(area: HTMLTextAreaElement): void {
  area.style.height = 'auto';
  area.style.height = `${area.scrollHeight}px`;
}
