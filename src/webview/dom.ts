/** Making elements without a framework. */

type Child = Node | string;

export function element<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Record<string, string>, ...children: Child[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function button(label: string, attributes: Record<string, string>, onClick: () => void): HTMLButtonElement {
  const made = element('button', { type: 'button', ...attributes }, label);
  made.addEventListener('click', onClick);
  return made;
}

export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...children);
}

/** Makes `change`; where that takes away the focused element within `root`, `next` moves the focus on, which would be lost otherwise. */
export function keepingFocus(root: Element, change: () => void, next: (lost: Element) => void): void {
  const focused = document.activeElement;
  const within = focused !== null && root.contains(focused);
  change();
  if (within && !focused.checkVisibility()) next(focused);
}
