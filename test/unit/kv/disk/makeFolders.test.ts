/** Folders are made with their parents, by several processes at once, without waiting forever. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeFolders } from '../../../../engine/kv/disk/makeFolders.ts';

const root = mkdtempSync(path.join(tmpdir(), 'kvasir-folders-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

test('folders are made with their parents by several callers at once; existing ones stay', async () => {
  const deep = path.join(root, 'a', 'b', 'c');
  await Promise.all(
    [deep, path.join(deep, 'd'), path.join(root, 'a', 'x'), deep].map((dir) => makeFolders(dir, 0o700)),
  );
  for (const dir of [deep, path.join(deep, 'd'), path.join(root, 'a', 'x')])
    expect(statSync(dir).isDirectory()).toBe(true);
  if (process.platform !== 'win32') expect(statSync(deep).mode & 0o777).toBe(0o700);
  await makeFolders(deep);
  await makeFolders(root);
});

test('while it waits for the file system others go on', async () => {
  const order: string[] = [];
  const made = makeFolders(path.join(root, 'later', 'deep')).then(() => order.push('made'));
  order.push('others');
  await made;
  expect(order).toEqual(['others', 'made']);
});

test("a file in the place of a folder gives the system's error", async () => {
  const file = path.join(root, 'file');
  writeFileSync(file, '');
  await expect(makeFolders(file)).rejects.toThrow('EEXIST');
  await expect(makeFolders(path.join(file, 'below'))).rejects.toThrow(/ENOTDIR|ENOENT|EEXIST/);
});

test.runIf(process.platform === 'linux')(
  'where the system answers ENOENT to whatever is to be made, that is the error',
  async () => {
    for (const dir of ['/proc/kvasir', '/proc/kvasir/deep/er'])
      await expect(makeFolders(dir)).rejects.toThrow('ENOENT');
  },
);
