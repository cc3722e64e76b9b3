/** What holds for all source files: names of their own, and a length that a reader can take in. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../../..');
const filesOf = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(folder, path));
const files = ['engine', 'src'].flatMap(filesOf);

it('no two source files have one name', () => {
  const names = files.map((path) => basename(path));
  expect(files.length).toBeGreaterThan(300);
  expect(files.filter((path, i) => names.indexOf(basename(path)) !== i)).toEqual([]);
});

it('no file of the engine is longer than 300 lines, and no line longer than 140 columns', () => {
  const long = files.flatMap((path) => {
    const lines = readFileSync(join(root, path), 'utf8').trimEnd().split('\n');
    const wide = lines.findIndex((line) => line.length > 140);
    return [
      ...(path.startsWith('engine') && lines.length > 300 ? [`${path}: ${lines.length} lines`] : []),
      ...(wide >= 0 ? [`${path}:${wide + 1}: ${lines[wide]?.length} columns`] : []),
    ];
  });
  expect(long).toEqual([]);
});
