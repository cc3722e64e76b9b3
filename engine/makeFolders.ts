/** Folders for what the engine keeps. */
import { mkdirSync, statSync } from 'node:fs';
import path from 'node:path';

/**
 * Makes a folder and those above it; one that is there stays as it is. Like mkdirSync's `recursive`, which (as its asynchronous
 * sisters) never returns where a file system refuses new folders with ENOENT (Linux /proc). @throws an error of the file system.
 */
export function makeFolders(dir: string, mode = 0o777): void {
  try {
    mkdirSync(dir, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (statSync(dir, { throwIfNoEntry: false })?.isDirectory()) return;
    const parent = path.dirname(dir);
    if (code !== 'ENOENT' || parent === dir || statSync(parent, { throwIfNoEntry: false })) throw error;
    makeFolders(parent, mode);
    // Once more as a whole: another process may have made it meanwhile.
    makeFolders(dir, mode);
  }
}
