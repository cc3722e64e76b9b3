/** An answer's blocks during streaming: a block with unchanged source has the same HTML, so its element can stay. */
import { expect, test, vi } from 'vitest';

// DOMPurify needs a page; the editor tests show what it lets through.
vi.mock('dompurify', () => ({ default: { sanitize: (html: string) => html } }));
const { toBlocks } = await import('../../../../src/webview/markdown.ts');

const ANSWER =
  '# Head\n\nFirst *para*, see [x][ref].\nSecond line\n\n```ts\nconst a = 1;\n\n```\n\n- one\n\n- two\n  - deep\n\n> quote\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n---\nEnd.\n\n[ref]: https://example.com\n';

test('equal sources give equal HTML, whatever text follows', () => {
  const seen = new Map<string, string>();
  for (let length = 0; length <= ANSWER.length; length++) {
    for (const { source, toHtml } of toBlocks(ANSWER.slice(0, length))) {
      const html = toHtml();
      expect(seen.get(source) ?? html).toBe(html);
      seen.set(source, html);
    }
  }
});

test('each block renders to one element', () => {
  const html = toBlocks(ANSWER).map((block) => block.toHtml().trim());
  expect(html.map((each) => /^<(\w+)/.exec(each)?.[1])).toEqual([
    'h1',
    'p',
    'pre',
    'ul',
    'blockquote',
    'table',
    'hr',
    'p',
  ]);
  expect(html[1]).toContain('<a href="https://example.com">x</a>');
});
