/** The sample folder of `npm start`: the editor finds no error in it, and has a file in front. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { writeSample } from '../../../scripts/sample.mjs';

test('the sample of npm start compiles by itself, so no import in it is broken', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kvasir-sample-'));
  try {
    const front = writeSample(folder);
    expect(existsSync(front)).toBe(true);
    expect(relative(folder, front)).toMatch(/^[a-z].*\.ts$/);
    const { status, stdout } = spawnSync(
      process.execPath,
      ['node_modules/typescript/bin/tsc', '--project', folder, '--pretty', 'false'],
      { encoding: 'utf8' },
    );
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
