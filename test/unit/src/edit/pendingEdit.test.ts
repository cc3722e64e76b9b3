/** A proposed edit during streaming: its preview, its line ends, and edits around it. */
import { expect, test } from 'vitest';
import { PendingEdit } from '../../../../src/edit/pendingEdit.ts';

const LF = 1;
const CRLF = 2;
function editOf(text: string, old: string, eol = LF) {
  const start = text.indexOf(old);
  const document = { uri: {}, eol, getText: () => text };
  let numChanges = 0;
  const edit = new PendingEdit(document as never, { start, end: start + old.length }, 'title', () => numChanges++);
  return { edit, numChanges: () => numChanges };
}

const TEXT = 'a();\nb();\nc();\nd();\n';

test('the preview grows line by line and keeps the original lines that the new text has not reached', () => {
  const { edit, numChanges } = editOf(TEXT, 'b();\nc();');
  expect(edit.preview(TEXT)).toBe('a();\n\nc();\nd();\n');
  edit.write('x(');
  expect(edit.preview(TEXT)).toBe('a();\nx(\nc();\nd();\n');
  edit.write(');\ny();\nz();');
  expect(edit.preview(TEXT)).toBe('a();\nx();\ny();\nz();\nd();\n');
  expect(edit.streaming).toBe(true);
  edit.finish('only();');
  expect(edit.preview(TEXT)).toBe('a();\nonly();\nd();\n');
  expect(edit.streaming).toBe(false);
  expect(numChanges()).toBe(3);
});

test('the new text has the line ends of the document', () => {
  const text = 'a();\r\nb();\r\n';
  const { edit } = editOf(text, 'b();', CRLF);
  edit.finish('x();\ny();');
  expect(edit.preview(text)).toBe('a();\r\nx();\r\ny();\r\n');
  edit.finish('x();\r\ny();');
  expect(edit.text).toBe('x();\r\ny();');
});

test('the preview follows an edit elsewhere; after an edit inside it stays as it was and cannot be applied', () => {
  const { edit } = editOf(TEXT, 'b();');
  edit.finish('x();');
  edit.anchor.follow([{ rangeOffset: 0, rangeLength: 0, text: '// first\n' }]);
  expect(edit.preview(`// first\n${TEXT}`)).toBe('// first\na();\nx();\nc();\nd();\n');
  const inside = `// first\n${TEXT}`.replace('b', 'bx');
  edit.anchor.follow([{ rangeOffset: 15, rangeLength: 0, text: 'x' }]);
  expect(edit.preview(inside)).toBe('// first\na();\nx();\nc();\nd();\n');
  expect(() => edit.locate({ getText: () => inside } as never, 'changed')).toThrow('changed');
});
