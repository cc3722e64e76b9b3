/** A disk that does not answer holds up nothing of the others. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { findModels } from '../../../engine/find/findModels.ts';

/** Calls for a path with this never end. */
const DEAD = 'dead-disk';

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  const unlessDead = <T extends (file: string, ...rest: never[]) => unknown>(call: T): T =>
    ((file: string, ...rest: never[]) =>
      file.includes(DEAD) ? new Promise(() => {}) : call(file, ...rest)) as unknown as T;
  const { stat, opendir, open, realpath } = real;
  return {
    ...real,
    stat: unlessDead(stat as never),
    opendir: unlessDead(opendir as never),
    open: unlessDead(open as never),
    realpath: unlessDead(realpath as never),
  };
});

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'kvasir-dead-'));
});
afterEach(() => rmSync(home, { recursive: true }));

function model(...folder: string[]): string {
  mkdirSync(join(home, ...folder), { recursive: true });
  writeFileSync(join(home, ...folder, 'config.json'), '{}');
  return join(home, ...folder);
}

test.each([
  ['a folder of the user', ['other', DEAD]],
  ['what a folder of the user holds', ['mine', `z-${DEAD}`]],
])('%s', async (_, parts) => {
  const good = model('mine', 'good');
  const hub = model('.cache', 'huggingface', 'hub', 'models--o--m', 'snapshots', 'x');
  const folders = [model(...parts), join(home, 'mine')].filter((folder) => !folder.includes('z-'));
  const machine = { env: {}, home, platform: 'darwin' as const };
  const { models, isCut } = await findModels(folders, machine, { maxMs: 500 });
  expect(isCut).toBe(true);
  expect(models.map(({ modelDir }) => modelDir)).toEqual([good, hub]);
});
