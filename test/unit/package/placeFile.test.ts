/** Files of a build get their places while programs run from them. */
import { mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
// @ts-expect-error A script without types.
import { placeFile } from '../../../scripts/placeFile.mjs';

test('an equal file stays, and what has an old one open keeps its bytes', () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'kvasir-place-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const [from, to] = [path.join(dir, 'from'), path.join(dir, 'to')];
  writeFileSync(from, 'one');
  placeFile(from, to);
  utimesSync(to, 1, 1);
  placeFile(from, to);
  expect(statSync(to).mtimeMs).toBe(1000);
  const open = openSync(to, 'r');
  writeFileSync(from, 'other');
  placeFile(from, to);
  expect([readFileSync(open, 'utf8'), readFileSync(to, 'utf8')]).toEqual(['one', 'other']);
  expect(readdirSync(dir).sort()).toEqual(['from', 'to']);
});
