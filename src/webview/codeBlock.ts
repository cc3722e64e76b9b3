/** A code block with its buttons. */
import type { CodeAction, Strings } from '../chat/chatMessages.ts';
import { confirmCopy, element, iconButton } from './dom.ts';

export interface CodeActions {
  copy(text: string): void;
  code(action: CodeAction, text: string, language: string): void;
}

/** Replaces a rendered `pre`. */
export function frameCode(block: HTMLElement, strings: Strings, actions: CodeActions): void {
  const code = block.querySelector('code');
  const text = code?.textContent ?? '';
  const language = /language-([\w+#-]+)/.exec(code?.className ?? '')?.[1] ?? '';
  const copy = iconButton('copy', strings.copy, '', () => {
    actions.copy(text);
    confirmCopy(copy, strings.copied);
  });
  const act = (name: 'insert' | 'apply' | 'newFile') =>
    iconButton(name, strings[name], '', () => actions.code(name, text, language));
  const bar = element(
    'div',
    { class: 'bar' },
    element('span', { class: 'language' }, language),
    copy,
    act('insert'),
    act('apply'),
    act('newFile'),
  );
  const frame = element(
    'div',
    {
      class: 'code',
      role: 'group',
      'aria-label': language ? strings.codeIn.replace('{0}', () => language) : strings.code,
    },
    bar,
  );
  block.replaceWith(frame);
  // Wide lines can be scrolled to by keyboard, too.
  block.tabIndex = 0;
  frame.append(block);
}
