/**
 * Reads sources that the built-in model was not trained on. They are frozen copies of files of this project, so that
 * figures do not change with it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { SourceFile } from '../eval/exercises.ts';

const FOLDER = path.resolve(import.meta.dirname, '../../fixtures/heldout');

/**
 * Returns `cache-store.ts.txt` as `cache/store.ts`. The real names would make tools treat the copies as project files.
 */
export function heldoutFiles(): SourceFile[] {
  const names = readdirSync(FOLDER)
    .filter((name) => name.endsWith('.txt'))
    .sort();
  return names.map((name) => ({
    path: name.replace('-', '/').replace(/\.txt$/, ''),
    text: readFileSync(path.join(FOLDER, name), 'utf8'),
  }));
}
