/**
 * Sources that no model of ours has seen: frozen copies of files of this project, which the built-in model was not trained on, so
 * that figures do not change with the project.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { SourceFile } from '../eval/exercises.ts';

const FOLDER = path.resolve(import.meta.dirname, '../../fixtures/heldout');

/** `cache-store.ts.txt` as `cache/store.ts`: under their own names tools would take them for the project's. */
export function heldoutFiles(): SourceFile[] {
  const names = readdirSync(FOLDER)
    .filter((name) => name.endsWith('.txt'))
    .sort();
  return names.map((name) => ({
    path: name.replace('-', '/').replace(/\.txt$/, ''),
    text: readFileSync(path.join(FOLDER, name), 'utf8'),
  }));
}
