/** Turns "line 12" in an answer about a file into a button that shows the line. */
import { button, element } from './dom.ts';

/** Includes the brackets and punctuation beside it, which stay on its line. */
const LINES = /(\(?)(?<!\p{L})((?:lines?|linhas?) (\d+)(?:–\d+)?)([).,:]*)/gu;

/** Everywhere in `root` except in code. @param open receives the first of the lines, from 1 */
export function linkLines(root: Element, title: (line: number) => string, open: (line: number) => void): void {
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found: Text[] = [];
  while (texts.nextNode())
    if (!texts.currentNode.parentElement?.closest('code, pre, a, button')) found.push(texts.currentNode as Text);
  for (const text of found) {
    const parts: (string | Node)[] = [];
    let end = 0;
    for (const match of text.data.matchAll(LINES)) {
      const [whole, before = '', shown = '', first, behind = ''] = match;
      const line = Number(first);
      parts.push(
        text.data.slice(end, match.index),
        element(
          'span',
          { class: 'line' },
          before,
          button(shown, { class: 'link', title: title(line) }, () => open(line)),
          behind,
        ),
      );
      end = match.index + whole.length;
    }
    if (parts.length) text.replaceWith(...parts, text.data.slice(end));
  }
}
