/**
 * Which model folders of a machine are found: in the Hugging Face cache with its own layout, and in the user's folders.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hubFolder } from '../../../engine/download/hubCache.ts';
import { findModels } from '../../../engine/find/findModels.ts';
import { repositoryName } from '../../../engine/find/names.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'kvasir-home-'));
});
afterEach(() => rmSync(home, { recursive: true }));

function model(...folder: string[]): string {
  const dir = join(home, ...folder);
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'config.json'), '{}');
  return dir;
}
function write(text: string, ...file: string[]): void {
  mkdirSync(dirname(join(home, ...file)), { recursive: true });
  writeFileSync(join(home, ...file), text);
}
const HUB = ['.cache', 'huggingface', 'hub'];
/** What is shown of each model. */
const find = async (folders: string[] = []) =>
  (await findModels(folders, { env: {}, home, platform: 'darwin' })).models.map(({ modelDir, name, source }) => ({
    modelDir,
    name,
    source,
  }));

describe('the Hugging Face cache', async () => {
  it('is located by its environment variables', () => {
    const at = (env: Record<string, string>) => hubFolder({ env, home: '/h' });
    expect(at({})).toBe(join('/h', '.cache', 'huggingface', 'hub'));
    expect(at({ XDG_CACHE_HOME: '/x' })).toBe(join('/x', 'huggingface', 'hub'));
    expect(at({ HF_HOME: '~/hf', XDG_CACHE_HOME: '/x' })).toBe(join('/h', 'hf', 'hub'));
    expect(at({ HUGGINGFACE_HUB_CACHE: '/c', HF_HOME: '/f' })).toBe('/c');
    expect(at({ HF_HUB_CACHE: '/d', HUGGINGFACE_HUB_CACHE: '/c' })).toBe('/d');
  });

  it('gives the snapshot that main names, with the name of its repository', async () => {
    model(...HUB, 'models--Qwen--Qwen3-0.6B', 'snapshots', 'aaa');
    const main = model(...HUB, 'models--Qwen--Qwen3-0.6B', 'snapshots', 'bbb');
    write('bbb\n', ...HUB, 'models--Qwen--Qwen3-0.6B', 'refs', 'main');
    expect(await find()).toEqual([{ modelDir: main, name: 'Qwen/Qwen3-0.6B', source: 'huggingFace' }]);
  });

  it('gives the newest snapshot if the one of main is missing', async () => {
    const old = model(...HUB, 'models--gpt2', 'snapshots', 'zzz');
    const young = model(...HUB, 'models--gpt2', 'snapshots', 'aaa');
    utimesSync(old, 1, 1);
    write('../../../outside', ...HUB, 'models--gpt2', 'refs', 'main');
    expect(await find()).toEqual([{ modelDir: young, name: 'gpt2', source: 'huggingFace' }]);
  });

  it('looks for a model in some of very many snapshots, first in that of main', async () => {
    const snapshots = (name: string) => [...HUB, `models--o--${name}`, 'snapshots'];
    for (const name of ['a', 'b']) {
      for (let i = 0; i < 40; i++) mkdirSync(join(home, ...snapshots(name), `${i}`), { recursive: true });
      model(...snapshots(name), 'old');
      utimesSync(join(home, ...snapshots(name), 'old'), 1, 1);
    }
    write('old', ...HUB, 'models--o--b', 'refs', 'main');
    const { models, isCut } = await findModels([], { env: {}, home, platform: 'darwin' });
    expect([models.map(({ name }) => name), isCut]).toEqual([['o/b'], true]);
  });

  it.skipIf(process.platform === 'win32')('shows a name with a line break in one line', async () => {
    model(...HUB, 'models--two\nlines--x\ty', 'snapshots', 'aaa');
    model('mine', 'two\nlines \u2028');
    expect((await find([join(home, 'mine')])).map(({ name }) => name)).toEqual([
      String.raw`two\nlines \u2028`,
      String.raw`two\nlines/x\ty`,
    ]);
  });

  it('leaves out datasets, incomplete downloads and files', async () => {
    model(...HUB, 'datasets--a--b', 'snapshots', 'x');
    mkdirSync(join(home, ...HUB, 'models--c--d', 'snapshots', 'x'), { recursive: true });
    write('', ...HUB, 'version.txt');
    expect(await find()).toEqual([]);
  });

  it.skipIf(process.platform === 'win32')('finds a config.json that is a link to a blob', async () => {
    const dir = join(home, ...HUB, 'models--a--b', 'snapshots', 'x');
    mkdirSync(dir, { recursive: true });
    write('{}', ...HUB, 'models--a--b', 'blobs', '123');
    symlinkSync('../../blobs/123', join(dir, 'config.json'));
    expect((await find()).map(({ name }) => name)).toEqual(['a/b']);
  });
});

describe('GGUF files', () => {
  it('are found in folders of the user, also one level deeper, by their first parts', async () => {
    for (const file of ['a-q4_0.gguf', 'b-00001-of-00002.gguf', 'b-00002-of-00002.gguf', 'mmproj-a.gguf', 'notes.txt'])
      write('', 'files', file);
    write('', 'files', 'publisher', 'c.GGUF');
    write('', 'files', 'publisher', 'deeper', 'd.gguf');
    expect(await find([join(home, 'files')])).toEqual(
      [
        ['a-q4_0', 'a-q4_0.gguf'],
        ['b', 'b-00001-of-00002.gguf'],
        ['c', join('publisher', 'c.GGUF')],
      ].map(([name, file]) => ({ modelDir: join(home, 'files', file!), name, source: 'folder' })),
    );
  });

  it('are found in snapshots that hold nothing else', async () => {
    write('', ...HUB, 'models--a--b-GGUF', 'snapshots', 'x', 'b-q8_0.gguf');
    const dir = model(...HUB, 'models--c--d', 'snapshots', 'x');
    for (const file of ['d.gguf', 'model.safetensors']) write('', ...HUB, 'models--c--d', 'snapshots', 'x', file);
    expect(await find()).toEqual([
      {
        modelDir: join(home, ...HUB, 'models--a--b-GGUF', 'snapshots', 'x', 'b-q8_0.gguf'),
        name: 'b-q8_0',
        source: 'huggingFace',
      },
      { modelDir: dir, name: 'c/d', source: 'huggingFace' },
    ]);
  });

  it('are found in a folder of a snapshot, which hides no other folders', async () => {
    const snapshot = [...HUB, 'models--a--b-GGUF', 'snapshots', 'x'];
    for (const part of [1, 2]) write('', ...snapshot, 'BF16', `b-0000${part}-of-00002.gguf`);
    model(...snapshot, 'onnx');
    const file = join(home, ...snapshot, 'BF16', 'b-00001-of-00002.gguf');
    expect(await find()).toEqual([{ modelDir: file, name: 'b', source: 'huggingFace' }]);
  });

  it('are found beside a config.json without weights', async () => {
    const snapshot = model(...HUB, 'models--a--b-GGUF', 'snapshots', 'x');
    const mine = model('mine');
    for (const folder of [snapshot, mine]) writeFileSync(join(folder, 'b-q8_0.gguf'), '');
    const files = [mine, snapshot].map((folder) => join(folder, 'b-q8_0.gguf'));
    expect((await find([mine])).map(({ modelDir }) => modelDir)).toEqual(files);
    for (const folder of [snapshot, mine]) writeFileSync(join(folder, 'model.safetensors'), '');
    expect((await find([mine])).map(({ modelDir }) => modelDir)).toEqual([mine, snapshot]);
  });
});

describe('folders of the user', () => {
  it('are models or contain models one level deep', async () => {
    const one = model('single');
    const a = model('many', 'a');
    model('many', 'deeper', 'c');
    expect(await find([join(home, 'single'), '~/many'])).toEqual([
      { modelDir: one, name: 'single', source: 'folder' },
      { modelDir: a, name: 'a', source: 'folder' },
    ]);
  });

  it('that are missing, relative or empty give no models', async () => {
    model('relative');
    expect(await find([join(home, 'missing'), 'relative', ''])).toEqual([]);
  });

  it('are listed once, even if they are also in the cache', async () => {
    const dir = model(...HUB, 'models--a--b', 'snapshots', 'x');
    expect(await find([dir, dirname(dir)])).toEqual([{ modelDir: dir, name: 'a/b', source: 'folder' }]);
  });
});

it('a repository name is given only for folders of a Hugging Face cache', () => {
  expect(repositoryName('/x/models--Qwen--Qwen2.5-Coder-1.5B--Instruct/snapshots/abc')).toBe(
    'Qwen/Qwen2.5-Coder-1.5B--Instruct',
  );
  expect(repositoryName('/x/models--gpt2/snapshots/abc')).toBe('gpt2');
  expect(repositoryName('/x/models--a--b/other/abc')).toBeUndefined();
  expect(repositoryName('/models/qwen')).toBeUndefined();
});
