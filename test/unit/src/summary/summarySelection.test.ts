/** Summarize Selection while the model loads: the selected text at its later position, or an error. */
import { expect, test, vi } from 'vitest';

vi.mock('../../../../src/vscode.ts', () => ({ l10n: { t: (text: string) => text } }));
const { rangeLater } = await import('../../../../src/summary/summaries.ts');

function editorOf(text: string, start: number, end: number) {
  const document = {
    text,
    version: 1,
    isClosed: false,
    offsetAt: (offset: number) => offset,
    getText: (of: { start: number; end: number }) => document.text.slice(of.start, of.end),
  };
  return { document, selection: { start, end } };
}

test('the selection is used unchanged or moved, and refused if it is no longer selected', () => {
  const editor = editorOf('abcdef', 2, 4);
  const range = rangeLater(editor as never);
  editor.selection = { start: 0, end: 0 };
  expect(range()).toEqual({ start: 2, end: 4 });
  Object.assign(editor.document, { text: 'xabcdef', version: 2 });
  expect(range).toThrow('Select the lines again');
  editor.selection = { start: 3, end: 5 };
  expect(range()).toEqual({ start: 3, end: 5 });
});
