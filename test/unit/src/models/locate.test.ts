/** Which manifest belongs to a model. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { describeModel, locateModel, readManifest } from '../../../../src/models/locate.ts';

vi.mock('../../../../src/vscode.ts', async () => ({
  env: { language: 'en' },
  l10n: { t: (await import('../../../../engine/protocol/translate.ts')).english },
}));

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'kvasir-locate-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

test('a folder has kvasir.json in it, a GGUF file its own beside it, and parts that of the first one', () => {
  const write = (name: string, text = ''): void => writeFileSync(path.join(dir, name), text);
  for (const name of ['a.gguf', 'b.gguf', 'm-00001-of-00002.GGUF', 'm-00002-of-00002.GGUF', 'sha256-12']) write(name);
  write('kvasir.json', '{"name":"folder"}');
  write('a.gguf.kvasir.json', '{"name":"one","note":"mine"}');
  write('m-00001-of-00002.GGUF.kvasir.json', '{"name":"parts"}');
  write('sha256-12.kvasir.json', '{"name":"blob"}');
  const names = ['', 'a.gguf', 'b.gguf', 'm-00002-of-00002.GGUF', 'sha256-12'].map(
    (name) => describeModel({ modelDir: path.join(dir, name) }).name,
  );
  expect(names).toEqual(['folder', 'one', 'b', 'parts', 'blob']);
  expect(describeModel({ modelDir: path.join(dir, 'a.gguf') }).note).toBe('mine');
  expect(readManifest(path.join(dir, 'missing.gguf'))).toEqual({});
});

test('the setting is a path or a name; a name is shown as it is found, and an unknown one names the setting', async () => {
  const file = path.join(dir, 'kvasir-named-model-q8_0.gguf');
  writeFileSync(file, 'GGUF');
  const locate = (model: string) => locateModel({ model, modelFolders: [dir] }, '/extension');
  expect(await locate('')).toEqual({ modelDir: path.join('/extension', 'model'), builtIn: true });
  expect(await locate(file)).toEqual({ modelDir: file, builtIn: false });
  const named = await locate('kvasir-named-model-q8_0');
  expect(named).toEqual({ modelDir: file, builtIn: false, name: 'kvasir-named-model-q8_0' });
  expect(describeModel({ modelDir: '/blobs/sha256-12', name: 'qwen:1b' }).name).toBe('qwen:1b');
  await expect(locate('kvasir-unknown:1b')).rejects.toThrow(
    /^kvasir\.model: No model on this machine is called kvasir-unknown:1b\. Looked through: your folders \(/,
  );
  await expect(locate(`${file}.gone`)).rejects.toThrow('The setting kvasir.model does not name a folder or a file');
});
