/** Makes the folders of the files that the engine keeps. */
import { mkdir, stat } from 'node:fs/promises';
import path from 'node:path';

/**
 * Makes a folder and its parents; one that exists stays as it is. Used instead of mkdir's `recursive`, which never
 * returns where a file system refuses new folders with ENOENT (Linux /proc). @throws an error of the file system.
 */
export async function makeFolders(dir: string, mode = 0o777): Promise<void> {
  const parent = path.dirname(dir);
  try {
    await makeFolder(dir, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || parent === dir) throw error;
    await makeFolders(parent, mode);
    await makeFolder(dir, mode);
  }
}

/** It is no error if another process makes the folder at the same time. */
async function makeFolder(dir: string, mode: number): Promise<void> {
  try {
    await mkdir(dir, mode);
  } catch (error) {
    const found = await stat(dir).catch(() => null);
    if (!found?.isDirectory()) throw error;
  }
}
