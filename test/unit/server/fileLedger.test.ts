/** Which files' blocks may be written to the disk. */
import { expect, test } from 'vitest';
import { FileLedger } from '../../../engine/server/fileLedger.ts';

test('an unsaved text is not written to disk until it is saved', () => {
  const files = new FileLedger();
  files.changed('a');
  expect(files.mayBeKept('a')).toBe(true);
  files.changed('a', { unsaved: true });
  // Idle work does not make it a saved one.
  files.touch('a');
  expect(files.mayBeKept('a')).toBe(false);
  files.saved('a', true);
  expect(files.mayBeKept('a')).toBe(true);
  files.saved('a', false);
  expect(files.mayBeKept('a')).toBe(false);
});

test('an unsaved text is forgotten as soon as it changes', () => {
  const files = new FileLedger();
  const layout = { fileBlock: () => ({ tokenIds: [1, 2, 3], numHeaderTokens: 1 }) };
  const documents = { all: () => [] };
  const remembered = (...texts: { text: string; unsaved: boolean }[]): number => {
    for (const { text, unsaved } of texts) {
      files.changed('a', { unsaved });
      files.blockIds({ docId: 'a', path: 'a.ts', text } as never, layout as never);
    }
    files.changed('a');
    files.close('a');
    return files.blocks(documents as never, layout as never).length;
  };
  expect(remembered({ text: 'secret', unsaved: true })).toBe(0);
  expect(remembered({ text: 'saved', unsaved: false })).toBe(1);
});

test('a file that was secret once is never written to disk', () => {
  const files = new FileLedger();
  files.changed('a', { secret: true, unsaved: true });
  files.changed('a');
  files.saved('a', true);
  expect(files.mayBeKept('a')).toBe(false);
});
