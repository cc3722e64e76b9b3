/** Models of Ollama, LM Studio and llama.cpp: found by their own layouts, once each, and called by name. Hostile files. */
import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { modelNamed } from '../../../engine/find/byName.ts';
import { findModels } from '../../../engine/find/findModels.ts';
import type { FoundModel } from '../../../engine/find/found.ts';
import { faultText, nameProblemText, sourceText } from '../../../engine/find/texts.ts';
import { english } from '../../../engine/protocol/translate.ts';
import { inspectFolder } from '../../../engine/server/inspection.ts';

const GGUF = readFileSync('test/fixtures/models/gguf-qwen2/gguf-qwen2-q8_0.gguf');
const OTHER = readFileSync('test/fixtures/models/gguf-qwen2/gguf-qwen2-q4_0.gguf');
const MODEL = 'application/vnd.ollama.image.model';

let home: string;
beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), 'kvasir-tools-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const at = (...parts: string[]) => path.join(home, ...parts);
function write(bytes: Uint8Array | string, ...parts: string[]): string {
  mkdirSync(path.dirname(at(...parts)), { recursive: true });
  writeFileSync(at(...parts), bytes);
  return at(...parts);
}

const OLLAMA = ['.ollama', 'models'];
const LIBRARY = ['registry.ollama.ai', 'library'];
const hex = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
function blob(bytes: Uint8Array, folder = OLLAMA): { mediaType: string; digest: string; size: number } {
  write(bytes, ...folder, 'blobs', `sha256-${hex(bytes)}`);
  return { mediaType: MODEL, digest: `sha256:${hex(bytes)}`, size: bytes.length };
}
const manifest = (name: string[], layers: unknown, folder = OLLAMA) =>
  write(JSON.stringify({ schemaVersion: 2, layers }), ...folder, 'manifests', ...name);

const machine = (env: Record<string, string> = {}) => ({ env, home, platform: 'darwin' as const });
const search = (env?: Record<string, string>, folders: string[] = []) => findModels(folders, machine(env));
const names = async (env?: Record<string, string>) => (await search(env)).models.map(({ name }) => name);
/** Name and reason of each. */
const faults = async () =>
  Object.fromEntries((await search()).models.map(({ name, fault }) => [name, fault])) as Record<string, string>;

describe('Ollama', () => {
  test('has its models under the names that it shows, and the engine reads their blobs', async () => {
    const layer = blob(GGUF);
    manifest([...LIBRARY, 'qwen2.5-coder', '1.5b'], [{ mediaType: 'application/vnd.ollama.image.template' }, layer]);
    manifest(['registry.ollama.ai', 'someone', 'own', 'latest'], [blob(OTHER)]);
    manifest(
      ['hf.co', 'Owner', 'Name-GGUF', 'Q4_K_M'],
      [blob(Buffer.concat([GGUF, Buffer.alloc(32)])), { mediaType: 'application/vnd.ollama.image.projector' }],
    );
    const { models, places } = await search();
    expect(models.map(({ name, aliases }) => [name, aliases])).toEqual([
      ['hf.co/Owner/Name-GGUF:Q4_K_M', []],
      ['qwen2.5-coder:1.5b', []],
      ['someone/own:latest', ['someone/own']],
    ]);
    expect(places).toEqual([{ source: 'ollama', folder: at(...OLLAMA) }]);
    const { modelDir, bytes } = models[1]!;
    expect([modelDir, bytes]).toEqual([at(...OLLAMA, 'blobs', `sha256-${hex(GGUF)}`), GGUF.length]);
    expect(await inspectFolder(modelDir)).toMatchObject({ architecture: 'qwen2', format: 'Q8_0', canComplete: true });
  });

  test('is also where OLLAMA_MODELS says', async () => {
    const folder = ['elsewhere'];
    manifest([...LIBRARY, 'a', 'b'], [blob(GGUF, folder)], folder);
    expect(await names()).toEqual([]);
    expect(await names({ OLLAMA_MODELS: at('elsewhere') })).toEqual(['a:b']);
  });

  test('lists with a reason what cannot be opened, and trusts no manifest', async () => {
    const layer = blob(GGUF);
    const digest = `sha256:${'0'.repeat(64)}`;
    write('secret', 'secret');
    const cases: Record<string, [unknown, string]> = {
      missing: [[{ ...layer, digest }], 'missing'],
      cut: [[{ ...layer, size: layer.size + 1 }], 'cut'],
      outside: [[{ ...layer, digest: 'sha256:../../../../secret' }], 'badManifest'],
      number: [[{ ...layer, digest: 7 }], 'badManifest'],
      object: [{ 0: layer }, 'badManifest'],
      null: [[null, 'x', 3], 'noGguf'],
      cloud: [[], 'noGguf'],
      tensors: [[{ mediaType: 'application/vnd.ollama.image.tensor' }], 'noGguf'],
      text: [[blob(Buffer.from('no model'))], 'noGguf'],
      two: [[layer, layer], 'severalFiles'],
      lora: [[layer, { mediaType: 'application/vnd.ollama.image.adapter' }], 'adapter'],
    };
    for (const [name, [layers]] of Object.entries(cases)) manifest([...LIBRARY, name, 't'], layers);
    write('{"layers":', ...OLLAMA, 'manifests', ...LIBRARY, 'json', 't');
    write('null', ...OLLAMA, 'manifests', ...LIBRARY, 'nothing', 't');
    write(`{"layers":[]}${' '.repeat(1_000_001)}`, ...OLLAMA, 'manifests', ...LIBRARY, 'huge', 't');
    write('['.repeat(500_000), ...OLLAMA, 'manifests', ...LIBRARY, 'deep', 't');
    const expected = Object.entries(cases).map(([name, [, fault]]) => [`${name}:t`, fault]);
    for (const name of ['json', 'nothing', 'huge', 'deep']) expected.push([`${name}:t`, 'badManifest']);
    expect(await faults()).toEqual(Object.fromEntries(expected));
    for (const [, fault] of expected) expect(faultText(fault as never, english)).toMatch(/^[A-Z].*\.$/);
  });

  test.skipIf(process.platform === 'win32')(
    'ends at links in a circle, and lists a line break in one line',
    async () => {
      const layer = blob(GGUF);
      manifest([...LIBRARY, 'two\nlines', 't'], [layer]);
      symlinkSync('.', at(...OLLAMA, 'manifests', 'circle'));
      symlinkSync('itself', at(...OLLAMA, 'manifests', 'itself'));
      expect(await names()).toEqual([String.raw`two\nlines:t`]);
    },
  );

  test.skipIf(process.platform === 'win32' || process.getuid?.() === 0)(
    'that this user must not read is named once',
    async () => {
      manifest([...LIBRARY, 'a', 't'], [blob(GGUF)]);
      chmodSync(at(...OLLAMA, 'manifests'), 0);
      try {
        const { models, denied } = await search();
        expect([models, denied]).toEqual([[], [{ source: 'ollama', folder: at(...OLLAMA, 'manifests') }]]);
      } finally {
        chmodSync(at(...OLLAMA, 'manifests'), 0o700);
      }
    },
  );

  test('with very many names is listed in part, and says so', async () => {
    const layer = blob(GGUF);
    for (let i = 0; i < 1100; i++) manifest([...LIBRARY, `m${i}`, 't'], [layer]);
    const { models, isCut } = await search();
    expect(isCut).toBe(true);
    // All are one file.
    expect(models).toHaveLength(1);
    expect(models[0]!.aliases).toHaveLength(999);
    // In the order of names the last one.
    for (const name of ['m999:t', 'M999:T', 'm1000:t'])
      expect((await modelNamed(name, [], machine())).modelDir).toBe(models[0]!.modelDir);
  });
});

describe('LM Studio', () => {
  test('has publisher/repository/files, with parts once and without projectors; folders are models, too', async () => {
    const models = ['.lmstudio', 'models'];
    write(GGUF, ...models, 'publisher', 'Repo-GGUF', 'repo-q8_0.gguf');
    write(OTHER, ...models, 'publisher', 'Repo-GGUF', 'mmproj-repo.gguf');
    for (const part of [1, 2]) write(`${part}`, ...models, 'publisher', 'Large', `large-0000${part}-of-00002.gguf`);
    write('{}', ...models, 'mlx', 'Some-4bit', 'config.json');
    write('1234', ...models, 'mlx', 'Some-4bit', 'model.safetensors');
    expect((await search()).models).toEqual([
      {
        modelDir: at(...models, 'mlx', 'Some-4bit'),
        name: 'mlx/Some-4bit',
        aliases: [],
        source: 'lmStudio',
        bytes: 4,
      },
      {
        modelDir: at(...models, 'publisher', 'Large', 'large-00001-of-00002.gguf'),
        name: 'large',
        aliases: ['publisher/Large'],
        source: 'lmStudio',
        bytes: 2,
      },
      {
        modelDir: at(...models, 'publisher', 'Repo-GGUF', 'repo-q8_0.gguf'),
        name: 'repo-q8_0',
        aliases: ['publisher/Repo-GGUF', 'publisher/Repo-GGUF:Q8_0'],
        source: 'lmStudio',
        bytes: GGUF.length,
      },
    ]);
  });

  test('is found in its older folder, where its pointer leads, and where its settings keep models', async () => {
    write(GGUF, '.cache', 'lm-studio', 'models', 'p', 'r', 'old-q8_0.gguf');
    write(OTHER, 'moved', 'models', 'p', 'r', 'new-q4_0.gguf');
    write(`${at('moved')}\n`, '.lmstudio-home-pointer');
    write('GGUF', 'disk', 'p', 'r', 'more.gguf');
    write(JSON.stringify({ downloadsFolder: at('disk') }), 'moved', 'settings.json');
    expect(await names()).toEqual(['more', 'new-q4_0', 'old-q8_0']);
    write('{"downloadsFolder":', 'moved', 'settings.json');
    write('not/absolute', '.lmstudio-home-pointer');
    expect(await names()).toEqual(['old-q8_0']);
  });
});

test('llama.cpp has a cache by its variable, or that of the platform', async () => {
  const name = 'ggml-org_Qwen2.5-GGUF_qwen2.5-q8_0.gguf';
  const folders: [NodeJS.Platform, Record<string, string>, string[]][] = [
    ['linux', {}, ['.cache', 'llama.cpp']],
    ['linux', { XDG_CACHE_HOME: at('x') }, ['x', 'llama.cpp']],
    ['darwin', {}, ['Library', 'Caches', 'llama.cpp']],
    ['win32', { LOCALAPPDATA: at('local') }, ['local', 'llama.cpp']],
    ['darwin', { LLAMA_CACHE: at('own') }, ['own']],
  ];
  for (const [platform, env, folder] of folders) {
    const file = write(GGUF, ...folder, name);
    write(OTHER, ...folder, 'ggml-org_Qwen2.5-GGUF_mmproj-model-f16.gguf');
    const { models } = await findModels([], { env, home, platform });
    expect(models).toMatchObject([{ modelDir: file, source: 'llamaCpp', bytes: GGUF.length }]);
    rmSync(file);
  }
});

describe('a model in several places', () => {
  test('is listed once under its shortest name: two tags, a link, a copy', async () => {
    const layer = blob(GGUF);
    manifest([...LIBRARY, 'qwen', 'latest'], [layer]);
    manifest([...LIBRARY, 'qwen', '1b'], [layer]);
    const copy = write(GGUF, '.lmstudio', 'models', 'p', 'r', 'a-rather-long-name-q8_0.gguf');
    mkdirSync(at('mine'));
    linkSync(copy, at('mine', 'the-longest-name-of-them-all.gguf'));
    const { models } = await search({}, [at('mine')]);
    expect(models.map(({ name }) => name)).toEqual(['qwen:1b']);
    expect(models[0]!.aliases).toEqual(
      expect.arrayContaining(['qwen:latest', 'qwen', 'p/r', copy, at('mine', 'the-longest-name-of-them-all.gguf')]),
    );
  });

  test('is listed twice if only size and start agree', async () => {
    const changed = Buffer.from(GGUF);
    write(GGUF, 'mine', 'a.gguf');
    for (const place of [0.25, 0.4, 0.7, 0.999, 1]) {
      const position = Math.min(Math.floor(place * changed.length), changed.length - 1);
      changed[position]! ^= 1;
      write(changed, 'mine', 'b.gguf');
      expect((await search({}, [at('mine')])).models).toHaveLength(2);
      changed[position]! ^= 1;
    }
    copyFileSync(at('mine', 'a.gguf'), at('mine', 'b.gguf'));
    expect((await search({}, [at('mine')])).models).toHaveLength(1);
  });
});

test('a folder of a tool that is also one of the user is still read as that of the tool', async () => {
  manifest([...LIBRARY, 'a', 't'], [blob(GGUF)]);
  write(OTHER, '.lmstudio', 'models', 'p', 'r', 'b.gguf');
  const folders = [at(...OLLAMA), at('.lmstudio', 'models')];
  const { models } = await search({}, [...folders, ...folders]);
  expect(models.map(({ name }) => name)).toEqual(['a:t', 'b']);
});

test('of a model in parts one part is enough to be listed, and a copy with less parts is another model', async () => {
  write('2', 'mine', 'late-00002-of-00002.gguf');
  for (const name of ['one', 'two']) write('1', 'mine', name, 'm-00001-of-00002.gguf');
  rmSync(at('mine', 'two', 'm-00001-of-00002.gguf'));
  linkSync(at('mine', 'one', 'm-00001-of-00002.gguf'), at('mine', 'two', 'm-00001-of-00002.gguf'));
  write('2', 'mine', 'two', 'm-00002-of-00002.gguf');
  const { models } = await search({}, [at('mine')]);
  expect(models.map(({ modelDir, bytes }) => [path.relative(at('mine'), modelDir), bytes])).toEqual([
    ['late-00001-of-00002.gguf', 1],
    [path.join('one', 'm-00001-of-00002.gguf'), 1],
    [path.join('two', 'm-00001-of-00002.gguf'), 2],
  ]);
  await expect(inspectFolder(models[0]!.modelDir)).rejects.toThrow('there is no such file');
});

test('a folder may have as many names as the limit says', async () => {
  mkdirSync(at('mine'));
  for (let i = 0; i < 10_500; i++) write('', 'mine', `${i}`);
  write(GGUF, 'mine', 'z', 'a.gguf');
  const { models, isCut } = await search({}, [at('mine')]);
  expect([models.map(({ name }) => name), isCut]).toEqual([['a'], false]);
});

test.skipIf(process.platform === 'win32')('names of folders are shown in one line', async () => {
  write(GGUF, '.lmstudio', 'models', 'p\u001b[31m', 'r\n', 'a.gguf');
  write('{}', '.lmstudio', 'models', 'p\u001b[31m', 'x', 'config.json');
  const [first, second] = (await search()).models;
  expect([first!.aliases[0], second!.name]).toEqual([String.raw`p\u001b[31m/r\n`, String.raw`p\u001b[31m/x`]);
  const names = ['/a\nb', '/c'];
  expect(nameProblemText({ kind: 'several', name: 'x', names }, english)).toContain(String.raw`/a\nb, /c`);
});

describe('a name', () => {
  const called = (name: string): Promise<FoundModel> => modelNamed(name, [], machine());
  const HUB = ['.cache', 'huggingface', 'hub', 'models--o--m-GGUF', 'snapshots', 'x'];

  test('of Ollama, of the hub with or without a format, of a list, and of llama.cpp leads to its model', async () => {
    manifest([...LIBRARY, 'Qwen', 'latest'], [blob(GGUF)]);
    const file = write(OTHER, ...HUB, 'm-q4_0.gguf');
    const cached = write(`${GGUF.toString('latin1')}.`, 'Library', 'Caches', 'llama.cpp', 'a_b-GGUF_b-q8_0.gguf');
    for (const name of ['Qwen:latest', 'Qwen', 'qwen', 'QWEN:LATEST'])
      expect([name, (await called(name)).name]).toEqual([name, 'Qwen:latest']);
    for (const name of ['o/m-GGUF', 'o/m-GGUF:Q4_0', 'm-q4_0', 'O/M-gguf:q4_0'])
      expect([name, (await called(name)).modelDir]).toEqual([name, file]);
    for (const name of ['a/b-GGUF', 'a/b-GGUF:q8_0', 'a_b-GGUF_b-q8_0'])
      expect([name, (await called(name)).modelDir]).toEqual([name, cached]);
  });

  test('of several models asks for one of them', async () => {
    const files = ['m-q4_0.gguf', 'm-q8_0.gguf'].map((name, i) => write([OTHER, GGUF][i]!, ...HUB, name));
    await expect(called('o/m-GGUF')).rejects.toThrow(
      'Several models are called o/m-GGUF: m-q4_0, m-q8_0. Name one of them.',
    );
    expect((await called('o/m-GGUF:Q8_0')).modelDir).toBe(files[1]);
  });

  test('that nothing has says what was looked through; one that cannot be opened says why', async () => {
    await expect(called('x\ny')).rejects.toThrow(
      /^No model on this machine is called x\\ny: there is no folder of .*\.$/,
    );
    manifest([...LIBRARY, 'cloud', 't'], []);
    await expect(called('nothing')).rejects.toThrow(
      `No model on this machine is called nothing. Looked through: Ollama (${at(...OLLAMA)}).`,
    );
    await expect(called('cloud:t')).rejects.toThrow('cloud:t cannot be used: It is no GGUF file');
  });
});

test('every source has a name', () => {
  const sources = ['folder', 'huggingFace', 'ollama', 'lmStudio', 'llamaCpp'] as const;
  const places = sources.map((source) => ({ source, folder: '/f' }));
  expect(nameProblemText({ kind: 'unknown', name: 'x', places }, english)).toBe(
    `No model on this machine is called x. Looked through: ${sources.map((each) => `${sourceText(each, english)} (/f)`).join(', ')}.`,
  );
});
