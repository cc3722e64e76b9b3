/** Downloads from a hub on the loopback: the right file or none, whatever happens in between. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Choice, choiceNamed, choicesOf } from '../../../engine/download/choices.ts';
import { bytesHere, download, type Progress } from '../../../engine/download/download.ts';
import { Hub, type Listing } from '../../../engine/download/hub.ts';
import { CachedRepository } from '../../../engine/download/hubCache.ts';
import { DownloadError, type Problem } from '../../../engine/download/problem.ts';
import type { FoundModel } from '../../../engine/find/found.ts';
import { inHub } from '../../../engine/find/hubModels.ts';
import { Look } from '../../../engine/find/look.ts';
import { FakeHub, unlike } from '../../support/hub/fakeHub.ts';

const SIZE = 700_001;
const BIG = unlike(SIZE, 1);
const FILES: Record<string, Buffer> = {
  'README.md': Buffer.from('# a model'),
  LICENSE: Buffer.from('free'),
  'a-q8_0.gguf': BIG,
  'parts/b-q4_k_m-00001-of-00002.gguf': unlike(1000, 2),
  'parts/b-q4_k_m-00002-of-00002.gguf': unlike(2000, 3),
};
const FOLDER: Record<string, Buffer> = {
  'config.json': Buffer.from('{"model_type":"qwen3"}'),
  'tokenizer.json': Buffer.from('{}'),
  'model.safetensors': unlike(5000, 4),
  'onnx/model.onnx': Buffer.from('other'),
};

let fake: FakeHub;
let folder: string;
beforeEach(async () => {
  fake = await new FakeHub({ 'o/m': FILES, 'o/folder': FOLDER, 'o/none': { 'a.txt': Buffer.from('a') } }).start();
  folder = mkdtempSync(path.join(tmpdir(), 'kvasir-hub-'));
});
afterEach(async () => {
  await fake.stop();
  rmSync(folder, { recursive: true, force: true });
});

const hubOf = (token?: string, endpoint = fake.endpoint): Hub => new Hub({ endpoint, token, fetch });

interface Wanted {
  repository?: string;
  format?: string;
  token?: string;
  hub?: Hub;
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
}

async function get(wanted: Wanted = {}): Promise<string> {
  const { repository = 'o/m', format = 'Q8_0', signal = new AbortController().signal, onProgress = () => {} } = wanted;
  const hub = wanted.hub ?? hubOf(wanted.token);
  const listing = await hub.list(repository, 'main', signal);
  const choice = choiceNamed(choicesOf(listing.files), format)!;
  return download({ hub, folder, listing, revision: 'main', choice, signal, onProgress, firstPauseMs: 1 });
}

const problemOf = async (running: Promise<unknown>): Promise<Problem> => {
  const error = await running.then(
    () => {
      throw new Error('the download has not failed');
    },
    (reason: unknown) => reason,
  );
  if (!(error instanceof DownloadError)) throw error;
  expect(error.message).toMatch(/^[^\n]+\.$|: [^\n]+$/);
  return error.problem;
};

const cacheOf = (repository = 'o/m'): CachedRepository => new CachedRepository(folder, repository);
const left = (): string[] => (existsSync(cacheOf().blobs) ? readdirSync(cacheOf().blobs) : []);
/** Breaks a download off after some bytes; its part stays. */
async function breakOff(bytes: number): Promise<void> {
  const stop = new AbortController();
  const onProgress = ({ doneBytes }: Progress) => doneBytes >= bytes && stop.abort();
  await expect(get({ signal: stop.signal, onProgress })).rejects.toThrow(/abort/);
}

/** The models that are found in the cache. */
async function inCache(): Promise<FoundModel[]> {
  const found: FoundModel[] = [];
  for await (const model of inHub(folder, new Look())) found.push(model);
  return found;
}

describe('a repository', () => {
  test('of GGUF files is brought with its licence into the layout of the Hugging Face cache, where it is found', async () => {
    const file = await get();
    expect(path.relative(folder, file)).toBe(path.join('models--o--m', 'snapshots', fake.commit, 'a-q8_0.gguf'));
    expect(BIG.equals(readFileSync(file))).toBe(true);
    expect(lstatSync(file).isSymbolicLink()).toBe(process.platform !== 'win32');
    expect(readFileSync(path.join(folder, 'models--o--m', 'refs', 'main'), 'utf8')).toBe(fake.commit);
    expect(readdirSync(path.dirname(file)).sort()).toEqual(['LICENSE', 'a-q8_0.gguf']);
    expect(left().every((name) => /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(name))).toBe(true);
    expect(await inCache()).toMatchObject([{ modelDir: file, name: 'a-q8_0', source: 'huggingFace' }]);
  });

  test('with a file in parts is brought with all of them', async () => {
    const file = await get({ format: 'Q4_K_M' });
    expect(path.basename(file)).toBe('b-q4_k_m-00001-of-00002.gguf');
    expect(readdirSync(path.dirname(file))).toHaveLength(2);
    expect(readFileSync(file.replace('-00001-', '-00002-'))).toEqual(FILES['parts/b-q4_k_m-00002-of-00002.gguf']);
  });

  test('with safetensors is brought as a folder, without the files of other programs', async () => {
    const dir = await get({ repository: 'o/folder', format: 'safetensors' });
    expect(readdirSync(dir).sort()).toEqual(['config.json', 'model.safetensors', 'tokenizer.json']);
    expect(readFileSync(path.join(dir, 'model.safetensors'))).toEqual(FOLDER['model.safetensors']);
  });

  test('is listed over several pages, also by a mirror with a path', async () => {
    const mirror = await new FakeHub({ 'o/m': FILES }, '/mirror/hf').start();
    try {
      mirror.faults.pageSize = 2;
      const file = await get({ hub: hubOf(undefined, `${mirror.endpoint}/`) });
      expect(BIG.equals(readFileSync(file))).toBe(true);
    } finally {
      await mirror.stop();
    }
  });

  test('that is here is not loaded again', async () => {
    await get();
    fake.seen.length = 0;
    await get();
    expect(fake.loads).toEqual([]);
  });

  test('without a model is refused', async () => {
    const listing = await hubOf().list('o/none', 'main');
    expect(choicesOf(listing.files)).toEqual([]);
  });
});

describe('choices', () => {
  const file = (name: string, size: number) => ({ path: name, size, hash: '', algorithm: 'sha256' as const });
  test('are the GGUF files by size, then named by file or format; parts count together', () => {
    const names = ['m-Q8_0.gguf', 'M-q4_k_m-00001-of-00002.gguf', 'M-q4_k_m-00002-of-00002.gguf', 'm-q4_k_m.gguf'];
    const unusable = ['mmproj-f16.gguf', 'm-IQ2_XS.gguf', 'm-q5_0-00001-of-00002.gguf', 'a/b/m-f16.gguf', 'm.txt'];
    const choices = choicesOf([...names, ...unusable].map((name, i) => file(name, 100 - i)));
    expect(choices.map((one: Choice) => [one.path, one.format, one.bytes])).toEqual([
      ['m-q4_k_m.gguf', 'Q4_K_M', 97],
      ['m-Q8_0.gguf', 'Q8_0', 100],
      ['M-q4_k_m-00001-of-00002.gguf', 'Q4_K_M', 99 + 98],
    ]);
    expect(choiceNamed(choices, 'q4_k_m')?.path).toBe('m-q4_k_m.gguf');
    expect(choiceNamed(choices, 'm-Q8_0.gguf')?.format).toBe('Q8_0');
    expect(choiceNamed(choices, 'Q6_K')).toBeUndefined();
  });
});

describe('a cut', () => {
  test('at any byte is continued there, under an address asked for anew', async () => {
    fake.faults.signsOnce = true;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: SIZE - 1 }), { minLength: 1, maxLength: 4 }),
        async (cuts) => {
          rmSync(folder, { recursive: true, force: true });
          fake.seen.length = 0;
          // A cut beyond what is missing does nothing.
          fake.faults.cutAfter = [...cuts];
          const here: number[] = [];
          const onProgress = ({ doneBytes, state }: Progress) => state === 'retrying' && here.push(doneBytes);
          expect(BIG.equals(readFileSync(await get({ onProgress })))).toBe(true);
          fake.faults.cutAfter = [];
          expect(here.length).toBeGreaterThan(0);
          const ranges = fake.loads.map(({ range }) => range);
          expect(ranges).toEqual([undefined, ...here.map((bytes) => (bytes ? `bytes=${bytes}-` : undefined))]);
          for (const { range, ifRange } of fake.loads) expect(ifRange !== undefined).toBe(range !== undefined);
          const resolved = fake.seen.filter(({ server, url }) => server === 'hub' && url.includes('.gguf'));
          expect(resolved).toHaveLength(fake.loads.length);
        },
      ),
      { seed: 7, numRuns: 15 },
    );
  });

  test('that ends every attempt without a byte ends in one sentence, and the part stays for the next time', async () => {
    fake.faults.cutAfter = [300_000, 0, 0, 0, 0, 0, 0];
    const states = new Set<string>();
    const problem = await problemOf(get({ onProgress: ({ state }) => states.add(state) }));
    expect(problem).toMatchObject({ kind: 'cut', totalBytes: SIZE });
    const { doneBytes } = problem as Problem & { kind: 'cut' };
    expect(doneBytes).toBeGreaterThan(0);
    expect(states).toContain('retrying');
    fake.faults.cutAfter = [];
    fake.seen.length = 0;
    await get();
    expect(fake.loads.map(({ range }) => range)).toEqual([`bytes=${doneBytes}-`]);
  });

  test('by the user is continued by the next start, which hashes what is here and says how much that is', async () => {
    await breakOff(200_000);
    const listing = await hubOf().list('o/m', 'main');
    const here = await bytesHere(folder, 'o/m', choiceNamed(choicesOf(listing.files), 'Q8_0')!);
    expect(here).toBeGreaterThanOrEqual(200_000);
    // Nothing shows a model until it is whole.
    expect(await inCache()).toEqual([]);
    const states: string[] = [];
    fake.seen.length = 0;
    expect(BIG.equals(readFileSync(await get({ onProgress: ({ state }) => states.push(state) })))).toBe(true);
    expect(states[0]).toBe('checking');
    expect(fake.loads).toMatchObject([
      { range: expect.stringMatching(/^bytes=[2-6]\d{5}-$/), ifRange: expect.any(String) },
    ]);
  });

  test('part on disk that was damaged does not get a right name', async () => {
    await breakOff(200_000);
    const [listed] = (await hubOf().list('o/m', 'main')).files.filter(({ path: name }) => name === 'a-q8_0.gguf');
    const part = cacheOf().part(listed!);
    const bytes = readFileSync(part);
    bytes[5]! ^= 1;
    writeFileSync(part, bytes);
    expect(await problemOf(get())).toEqual({ kind: 'wrongHash', file: 'a-q8_0.gguf' });
    expect(existsSync(part)).toBe(false);
    expect(BIG.equals(readFileSync(await get()))).toBe(true);
  });
});

describe('a hub that misbehaves', () => {
  test('a flipped bit is noticed, and the part removed', async () => {
    fake.faults.flipByte = SIZE - 3;
    expect(await problemOf(get())).toEqual({ kind: 'wrongHash', file: 'a-q8_0.gguf' });
    expect(left().filter((name) => name.includes('kvasir'))).toEqual([]);
    expect(existsSync(cacheOf().snapshot(fake.commit))).toBe(false);
  });

  test('a flipped bit in a small file is noticed, too', async () => {
    const config = FOLDER['config.json']!;
    const hub = hubOf();
    const listing: Listing = await hub.list('o/folder', 'main');
    const choice = choiceNamed(choicesOf(listing.files), 'safetensors')!;
    config[3]! ^= 1;
    try {
      const { signal } = new AbortController();
      const running = download({ hub, folder, listing, revision: 'main', choice, signal, onProgress: () => {} });
      expect(await problemOf(running)).toEqual({ kind: 'wrongHash', file: 'config.json' });
    } finally {
      config[3]! ^= 1;
    }
  });

  test('a file that changes between two parts is never mixed', async () => {
    await breakOff(200_000);
    fake.faults.changed = true;
    fake.seen.length = 0;
    expect(await problemOf(get())).toEqual({ kind: 'wrongHash', file: 'a-q8_0.gguf' });
    // If-Range turned the part into all of the new file.
    expect(fake.loads.map(({ sent }) => sent)).toEqual([SIZE]);
    fake.faults.changed = false;
    expect(BIG.equals(readFileSync(await get()))).toBe(true);
  });

  test('200 in place of 206 begins again from the first byte', async () => {
    await breakOff(200_000);
    fake.faults.ignoresRanges = true;
    expect(BIG.equals(readFileSync(await get()))).toBe(true);
  });

  test.each(['refusesRanges', 'shiftsRanges'] as const)('%s begins again from the first byte', async (fault) => {
    await breakOff(200_000);
    fake.faults[fault] = true;
    fake.seen.length = 0;
    expect(BIG.equals(readFileSync(await get()))).toBe(true);
    expect(fake.loads.map(({ range }) => range?.slice(0, 6))).toEqual(['bytes=', undefined]);
  });

  test('more bytes than listed are not written', async () => {
    fake.faults.claimedSize = 1000;
    expect(await problemOf(get())).toMatchObject({ kind: 'changed' });
    expect(left().filter((name) => name.includes('incomplete'))).toEqual([]);
  });

  test('a busy server and an expired address are asked again', async () => {
    fake.faults.statuses = [503, 403, 429];
    expect(BIG.equals(readFileSync(await get()))).toBe(true);
  });

  test('a name that leaves the folder is not taken from the listing', async () => {
    const evil = { '../../../evil.md': BIG, '/evil.md': BIG, 'a\\b.md': BIG, 'c:d.md': BIG, 'ok.gguf': BIG };
    const other = await new FakeHub({ 'o/m': evil }).start();
    try {
      const { files } = await hubOf(undefined, other.endpoint).list('o/m', 'main');
      expect(files.map(({ path: name }) => name)).toEqual(['ok.gguf']);
    } finally {
      await other.stop();
    }
  });
});

describe('access', () => {
  test('a gated repository is refused in one sentence without a token, and comes with it', async () => {
    fake.faults.token = 'my-token';
    expect(await problemOf(get())).toMatchObject({ kind: 'gated', hasToken: false });
    expect(BIG.equals(readFileSync(await get({ token: 'my-token' })))).toBe(true);
    fake.faults.refusesToken = true;
    rmSync(folder, { recursive: true, force: true });
    expect(await problemOf(get({ token: 'my-token' }))).toMatchObject({ kind: 'gated', hasToken: true });
  });

  test('the token goes to the hub at each request, and never to the server it redirects to', async () => {
    fake.faults.token = 'my-token';
    fake.faults.cutAfter = [1000];
    await get({ token: 'my-token' });
    const tokens = (server: string) =>
      new Set(fake.seen.filter((each) => each.server === server).map((each) => each.authorization));
    expect(tokens('hub')).toEqual(new Set(['Bearer my-token']));
    expect(fake.loads).toHaveLength(2);
    expect(tokens('cdn')).toEqual(new Set([undefined]));
  });

  test('a repository or file that does not exist, and a name that is none', async () => {
    expect(await problemOf(get({ repository: 'o/missing' }))).toMatchObject({
      kind: 'notFound',
      repository: 'o/missing',
    });
    for (const name of ['', 'm', 'a/b/c', '../x', 'a/..', 'a b/c', 'https://x/y', 'a/b?c'])
      expect(await problemOf(hubOf().list(name, 'main'))).toEqual({ kind: 'badName', name });
    const listing = await hubOf().list('o/m', 'main');
    const choice = choiceNamed(choicesOf(listing.files), 'Q8_0')!;
    const files = choice.files.map((file) => ({ ...file, path: `no-${file.path}` }));
    const { signal } = new AbortController();
    const options = { hub: hubOf(), folder, listing, revision: 'main', signal, onProgress: () => {} };
    expect(await problemOf(download({ ...options, choice: { ...choice, files } }))).toMatchObject({
      kind: 'fileNotFound',
    });
  });

  test('no network is one sentence that names the host', async () => {
    const endpoint = fake.endpoint;
    await fake.stop();
    const problem = await problemOf(get({ hub: hubOf(undefined, endpoint) }));
    expect(problem).toEqual({ kind: 'unreachable', host: new URL(endpoint).host, reason: 'ECONNREFUSED' });
    await fake.start();
    for (const bad of ['nonsense', 'ftp://x', 'http://user:password@x'])
      expect(() => hubOf(undefined, bad)).toThrow('HF_ENDPOINT');
  });
});

describe('the disk', () => {
  test('too little space is noticed before the first byte', async () => {
    fake.faults.claimedSize = 2 ** 52;
    expect(await problemOf(get())).toMatchObject({ kind: 'noSpace' });
    expect(fake.loads).toEqual([]);
  });

  // The kernel's own full device stands for the part.
  test.skipIf(process.platform !== 'linux')('a disk that fills up during the download is one sentence', async () => {
    const listing = await hubOf().list('o/m', 'main');
    const part = cacheOf().part(listing.files.find(({ path: name }) => name === 'a-q8_0.gguf')!);
    mkdirSync(path.dirname(part), { recursive: true });
    symlinkSync('/dev/full', part);
    expect(await problemOf(get())).toEqual({ kind: 'diskFull', folder: cacheOf().folder });
    rmSync(part);
    expect(BIG.equals(readFileSync(await get()))).toBe(true);
  });

  test('a folder that cannot be written is one sentence', async () => {
    writeFileSync(path.join(folder, 'models--o--m'), 'a file');
    expect(await problemOf(get())).toMatchObject({ kind: 'cannotWrite' });
  });

  test('discarded parts leave nothing', async () => {
    await breakOff(200_000);
    await cacheOf().discardParts();
    expect(left().filter((name) => name.includes('kvasir'))).toEqual([]);
  });
});

describe('two at once', () => {
  test('load each byte once; the second waits and shows the progress of the first', async () => {
    fake.faults.delayMs = 60;
    const states: string[] = [];
    let begun = () => {};
    const first = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const running = get({ onProgress: ({ doneBytes }) => doneBytes > 1000 && begun() });
    await first;
    const second = get({ onProgress: ({ state }) => states.push(state) });
    expect(BIG.equals(readFileSync(await second))).toBe(true);
    await running;
    expect(fake.loads.map(({ sent }) => sent)).toEqual([SIZE]);
    expect(states).toContain('waiting');
  });

  test('the second goes on when the first is broken off', async () => {
    fake.faults.delayMs = 60;
    const stop = new AbortController();
    let waits = () => {};
    const waiting = new Promise<void>((resolve) => {
      waits = resolve;
    });
    let begun = () => {};
    const first = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const running = get({ signal: stop.signal, onProgress: ({ doneBytes }) => doneBytes > 1000 && begun() });
    await first;
    const second = get({ onProgress: ({ state }) => state === 'waiting' && waits() });
    await waiting;
    stop.abort();
    await expect(running).rejects.toThrow(/abort/);
    expect(BIG.equals(readFileSync(await second))).toBe(true);
  });

  test('the lock of a process that has ended is taken over', async () => {
    await breakOff(200_000);
    const listing = await hubOf().list('o/m', 'main');
    const blob = cacheOf().blob(listing.files.find(({ path: name }) => name === 'a-q8_0.gguf')!);
    const { hostname } = await import('node:os');
    // Higher than any process id of Linux.
    writeFileSync(`${blob}.kvasir.lock`, `4194305 ${hostname()} 00\n`);
    expect(BIG.equals(readFileSync(await get()))).toBe(true);
    expect(statSync(blob).size).toBe(SIZE);
    expect(existsSync(`${blob}.kvasir.lock`)).toBe(false);
  });
});
