/** Which files' blocks may be written to the disk. */
import { expect, test } from 'vitest';
import { FileLedger } from '../../engine/fileLedger.ts';

test('what is not saved is not kept on the disk, until it is', () => {
  const files = new FileLedger();
  files.changed('a');
  expect(files.mayBeKept('a')).toBe(true);
  files.changed('a', { unsaved: true });
  // Idle work does not make it a saved one.
  files.touch('a');
  expect(files.mayBeKept('a')).toBe(false);
  files.saved('a');
  expect(files.mayBeKept('a')).toBe(true);
  // A file that nobody has opened is none of ours.
  files.saved('b');
  expect(files.hasStale).toBe(true);
});

test('what was secret once is never kept on the disk', () => {
  const files = new FileLedger();
  files.changed('a', { secret: true, unsaved: true });
  files.changed('a');
  files.saved('a');
  expect(files.mayBeKept('a')).toBe(false);
});
