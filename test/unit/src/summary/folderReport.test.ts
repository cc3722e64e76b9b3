/** The Markdown report of a folder's summary. */
import MarkdownIt from 'markdown-it';
import { expect, test, vi } from 'vitest';
import { t } from '../../../support/editor/translate.ts';

vi.mock('../../../../src/vscode.ts', () => ({ l10n: { t }, EventEmitter: class {} }));
const { reportOf } = await import('../../../../src/summary/folderReport.ts');

test('the report links its files and escapes markup from models and files', () => {
  const evil =
    '![x](https://example.org/?leak) <img src=https://example.org/y> [z](command:evil) `a*b` https://example.org **bold** # no\n1. no';
  const markdown = reportOf(
    'src',
    {
      overview: evil,
      files: [{ path: 'a [b].ts', summary: evil, notes: [evil] }],
      skipped: [{ path: 'c.bin', reason: 'binary' }],
      numComputed: 1,
      notes: [],
    },
    ['<b>note</b>'],
    (name) => `file:///work/${encodeURI(name)}`,
  );
  const md = new MarkdownIt({ html: true, linkify: true });
  // The editor's preview allows more than the library does by default.
  md.validateLink = () => true;
  const html = md.render(markdown);
  expect(
    [...html.matchAll(/<(\w+)/g)]
      .map(([, tag]) => tag)
      .filter((tag) => !['h1', 'h2', 'p', 'ul', 'li', 'a', 'em', 'code', 'blockquote'].includes(tag as string)),
  ).toEqual([]);
  expect([...html.matchAll(/href="([^"]*)"/g)].map(([, href]) => href)).toEqual([
    'file:///work/a%20%5Bb%5D.ts',
    'file:///work/c.bin',
  ]);
  expect(html).toContain('<code>a*b</code>');
  expect(html).toContain('**bold**');
});

test('a name with a line break stays in its line of the list', () => {
  const markdown = reportOf(
    'odd\nfolder',
    {
      overview: '',
      files: [{ path: 'two\n- lines.ts', summary: 'Adds.', notes: [] }],
      skipped: [{ path: 'a\r\nb.bin', reason: 'binary' }],
      numComputed: 1,
      notes: [],
    },
    ['left out: x\n# y.ts'],
    () => 'file:///x',
  );
  const html = new MarkdownIt().render(markdown);
  expect(html.match(/<li>/g)).toHaveLength(2);
  expect(html.match(/<h1>.*<\/h1>/)?.[0]).toBe('<h1>Summary of odd\\nfolder</h1>');
  expect(html).toContain('two\\n- lines.ts');
  expect(html).toContain('a\\r\\nb.bin');
  expect(html).toContain('left out: x\\n# y.ts');
});
