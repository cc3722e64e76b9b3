/** What a hub may answer, and what happens to the token: one sentence each, and no secret in any. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { proxyFetch } from '../../../engine/cli/proxyFetch.ts';
import { choicesOf } from '../../../engine/download/choices.ts';
import { type Fetch, Hub } from '../../../engine/download/hub.ts';
import { DownloadError, type Problem } from '../../../engine/download/problem.ts';
import { FakeHub } from '../../support/hub/fakeHub.ts';

const GIT_HASH = 'a'.repeat(40);
const SHA256 = 'b'.repeat(64);

const entry = (path: unknown, more: object = {}) => ({ type: 'file', path, size: 1, oid: GIT_HASH, ...more });
const large = (path: string) => entry(path, { lfs: { oid: SHA256, size: 5 } });

let fake: FakeHub;
beforeEach(async () => {
  fake = await new FakeHub({ 'o/m': { 'm-q8_0.gguf': Buffer.from('bytes') } }).start();
});
afterEach(() => fake.stop());

const list = (options: { token?: string; endpoint?: string; fetch?: Fetch } = {}) =>
  new Hub({ endpoint: fake.endpoint, fetch, ...options }).list('o/m', 'main');

async function failure(running: Promise<unknown>): Promise<DownloadError> {
  const error = await running.then(
    () => new Error('the hub has answered'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof DownloadError)) throw error;
  return error;
}
const problemOf = async (running: Promise<unknown>): Promise<Problem> => (await failure(running)).problem;

/** The paths that are taken from a listing. */
async function taken(...entries: unknown[]): Promise<string[]> {
  fake.faults.listing = JSON.stringify(entries);
  return (await list()).files.map(({ path }) => path);
}

describe('the token', () => {
  test('with characters that no header may have is refused without being shown or sent', async () => {
    for (const token of ['hf_SECRET\nmore', 'hf_SECRET more', 'hf_SECRÉT', 'hf_SECRET\u0000']) {
      const { message, problem } = await failure(list({ token }));
      expect(problem).toEqual({ kind: 'badToken' });
      expect(message).not.toMatch(/hf_|SECR/);
    }
    expect(fake.seen).toEqual([]);
  });

  test('is sent without the spaces and line breaks around it', async () => {
    fake.faults.token = 'hf_SECRET';
    expect((await list({ token: ' hf_SECRET\r\n' })).files).toHaveLength(1);
  });

  test('is not sent without encryption, except to this machine', async () => {
    const asked: string[] = [];
    const answer: Fetch = (url) => {
      asked.push(url);
      return Promise.resolve(Response.json({ sha: GIT_HASH }));
    };
    for (const host of ['hub.example', '127.0.0.1.example', 'localhost.example', '10.0.0.1']) {
      const options = { endpoint: `http://${host}`, token: 'hf_SECRET', fetch: answer };
      const { message, problem } = await failure(list(options));
      expect(problem).toEqual({ kind: 'openToken', host });
      expect(message).not.toContain('SECRET');
    }
    expect(asked).toEqual([]);
    for (const endpoint of ['http://localhost', 'http://127.0.0.1:8080', 'http://[::1]', 'https://hub.example'])
      expect(await problemOf(list({ endpoint, token: 'x', fetch: answer }))).toMatchObject({ reason: 'noList' });
    expect(await problemOf(list({ endpoint: 'http://hub.example', fetch: answer }))).toMatchObject({
      reason: 'noList',
    });
  });

  test('and passwords are in no reason that fetch gives', async () => {
    const broken = (error: Error) => list({ fetch: () => Promise.reject(error) });
    const secret = new TypeError('Headers.append: "Bearer hf_SECRET" is invalid');
    expect((await failure(broken(secret))).message).toMatch(/cannot be reached\.$/);
    const wrapped = new TypeError('failed', { cause: { code: 'ENOTFOUND', message: 'getaddrinfo SECRET' } });
    expect(await problemOf(broken(wrapped))).toMatchObject({ kind: 'unreachable', reason: 'ENOTFOUND' });
  });
});

describe('an address with a password', () => {
  test('is neither followed nor shown', async () => {
    fake.faults.location = 'http://user:SECRET@127.0.0.1/x';
    const { message, problem } = await failure(list());
    expect(problem).toMatchObject({ kind: 'badListing', reason: 'badAddress' });
    expect(message).not.toContain('SECRET');
  });

  test('is no endpoint', () => {
    for (const endpoint of ['https://user:SECRET@hub.example', 'https://:SECRET@hub.example', 'user:SECRET@x y']) {
      expect(() => new Hub({ endpoint, fetch })).toThrow(/^HF_ENDPOINT must be/);
      expect(() => new Hub({ endpoint, fetch })).not.toThrow(/SECRET/);
    }
  });
});

describe('an answer that cannot be used', () => {
  test.each(['http://', 'ftp://127.0.0.1/x', 'data:text/plain,x'])('leads to %s', async (location) => {
    fake.faults.location = location;
    expect(await problemOf(list())).toMatchObject({ kind: 'badListing', reason: 'badAddress' });
  });

  test('leads from an encrypted address to one without encryption', async () => {
    const asked: string[] = [];
    const answer: Fetch = (url) => {
      asked.push(url);
      return Promise.resolve(new Response(null, { status: 302, headers: { location: 'http://hub.example/x' } }));
    };
    const problem = await problemOf(list({ endpoint: 'https://hub.example', fetch: answer }));
    expect(problem).toMatchObject({ kind: 'badListing', reason: 'unencrypted' });
    expect(asked).toHaveLength(1);
  });

  test('leads in a circle', async () => {
    fake.faults.location = '/api/models/o/m/revision/main';
    expect(await problemOf(list())).toMatchObject({ kind: 'badListing', reason: 'tooManyRedirects' });
  });

  test('names a next page that is no address', async () => {
    fake.faults.link = '<http://>; rel="next"';
    expect(await problemOf(list())).toMatchObject({ kind: 'badListing', reason: 'badAddress' });
  });

  test.each([
    ['{', 'noJson'],
    ['{}', 'noList'],
    ['null', 'noList'],
    ['[null]', 'badEntry'],
    ['[7]', 'badEntry'],
    ['[{}]', 'badEntry'],
  ])('is the listing %s', async (listing, reason) => {
    fake.faults.listing = listing;
    expect(await problemOf(list())).toMatchObject({ kind: 'badListing', reason });
  });

  test('is a page that is too long', async () => {
    fake.faults.listing = `[${' '.repeat(4e6)}]`;
    expect(await problemOf(list())).toMatchObject({ kind: 'badListing', reason: 'tooLong' });
  });

  test('lists too many files', async () => {
    const page = JSON.stringify(Array.from({ length: 10_001 }, (_, i) => entry(`${i}`)));
    fake.faults.listing = page;
    fake.faults.link = '<?cursor=x>; rel="next"';
    expect(await problemOf(list())).toMatchObject({ kind: 'badListing', reason: 'tooManyFiles' });
    expect(fake.seen.filter(({ url }) => url.includes('/tree/'))).toHaveLength(2);
  });
});

describe('a silent answer', () => {
  afterEach(() => void vi.useRealTimers());

  /** An answer whose body sends a space each `everyMs`, and has no end. */
  function trickling(everyMs: number): { fetch: Fetch; cancelled: () => boolean } {
    let isCancelled = false;
    const body = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        await new Promise((resolve) => setTimeout(resolve, everyMs));
        if (!isCancelled) controller.enqueue(Buffer.from(' '));
      },
      cancel: () => {
        isCancelled = true;
      },
    });
    return { fetch: () => Promise.resolve(new Response(body)), cancelled: () => isCancelled };
  }

  test.each([
    ['ends after the longest silence', 3600_000, 60_000],
    ['that trickles ends after the longest time for a listing', 10_000, 120_000],
  ])('%s', async (_, everyMs, endMs) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { fetch: answer, cancelled } = trickling(everyMs);
    const problem = problemOf(list({ fetch: answer }));
    await vi.advanceTimersByTimeAsync(endMs - 1);
    expect(cancelled()).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await problem).toMatchObject(
      endMs === 60_000 ? { kind: 'unreachable', reason: 'ETIMEDOUT' } : { kind: 'slowListing', repository: 'o/m' },
    );
    expect(cancelled()).toBe(true);
    expect(vi.getTimerCount()).toBeLessThanOrEqual(1);
  });

  /** Answers with one page of a listing after the other, each after `everyMs`. Ignores signals if told so. */
  function slow(everyMs: number, ignoresSignals = false): { fetch: Fetch; asked: () => number } {
    let asked = 0;
    const answer: Fetch = (url, { signal }) => {
      asked++;
      return new Promise((resolve, reject) => {
        if (!ignoresSignals) signal!.addEventListener('abort', () => reject(signal!.reason as Error));
        const body = url.includes('/revision/') ? { sha: GIT_HASH } : [];
        const headers = { link: `<?cursor=${asked}>; rel="next"` };
        setTimeout(() => resolve(Response.json(body, { headers })), everyMs);
      });
    };
    return { fetch: answer, asked: () => asked };
  }

  test.each([false, true])('of many slow pages ends after two minutes (signals ignored: %s)', async (ignores) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { fetch: answer, asked } = slow(25_000, ignores);
    let ended = false;
    const failed = failure(list({ fetch: answer })).finally(() => {
      ended = true;
    });
    await vi.advanceTimersByTimeAsync(119_999);
    expect(ended).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toBe(true);
    expect((await failed).message).toBe(
      `${new URL(fake.endpoint).host} takes too long to list the files of o/m. Try again later.`,
    );
    expect(asked()).toBe(5);
    await vi.advanceTimersByTimeAsync(1e6);
    expect(asked()).toBe(5);
  });

  test('without a head is told in words', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const failed = failure(list({ fetch: slow(1e9, true).fetch }));
    await vi.advanceTimersByTimeAsync(60_000);
    expect((await failed).message).toBe(`${new URL(fake.endpoint).host} does not answer. Try again later.`);
  });

  test.each([false, true])('is left at once when the user cancels (signals ignored: %s)', async (ignores) => {
    const stop = new AbortController();
    const hub = new Hub({ endpoint: fake.endpoint, fetch: slow(1e9, ignores).fetch });
    const listed = hub.list('o/m', 'main', stop.signal);
    stop.abort(new Error('by the user'));
    await expect(listed).rejects.toThrow('by the user');
  });

  test('is left at once when the user cancels while its body trickles', async () => {
    const stop = new AbortController();
    const { fetch: answer, cancelled } = trickling(5);
    const listed = new Hub({ endpoint: fake.endpoint, fetch: answer }).list('o/m', 'main', stop.signal);
    await new Promise((resolve) => setTimeout(resolve, 30));
    stop.abort(new Error('by the user'));
    await expect(listed).rejects.toThrow('by the user');
    expect(cancelled()).toBe(true);
  });
});

describe('a file of a listing', () => {
  test('that no platform could hold is left out if no model needs it', async () => {
    const names = ['con', 'docs/AUX.md', 'nul.tar.gz', 'com1/x', 'a/lpt9.bin', '../x.md', '/x', 'a//b', 'a\\b', 'c:d'];
    const fine = ['console.md', 'com10', 'docs/auxiliary.md', 'x'.repeat(512)];
    expect(await taken(...[...names, ...fine, 'y'.repeat(513)].map((name) => entry(name)))).toEqual(fine);
    expect(await taken({ type: 'directory', path: 'con', size: 0, oid: '' }, entry('a.bin', { oid: 'x' }))).toEqual([]);
  });

  test('that a model needs and that cannot be used is not passed over', async () => {
    const bad = [
      large('aux.gguf'),
      large('../m.gguf'),
      large(`${'a'.repeat(600)}.gguf`),
      entry('m.gguf', { lfs: { oid: GIT_HASH, size: 5 } }),
      entry('config.json', { oid: 'A'.repeat(40) }),
      entry('model-00002-of-00002.safetensors', { size: -1 }),
      entry('tokenizer.json', { size: '1' }),
      entry(undefined),
    ];
    for (const each of bad)
      expect(await problemOf(taken(large('ok.gguf'), each))).toMatchObject({ kind: 'badListing', reason: 'badEntry' });
  });
});

test('safetensors with a missing shard are no choice', () => {
  const choose = (...names: string[]) =>
    choicesOf(
      ['config.json', 'tokenizer.json', ...names].map((path) => ({ path, size: 1, hash: '', algorithm: 'sha256' })),
    );
  const shards = [1, 2, 3].map((i) => `model-0000${i}-of-00003.safetensors`);
  expect(choose(...shards)).toMatchObject([{ format: 'safetensors', bytes: 5 }]);
  expect(choose('model-00001-of-000002.safetensors', 'model-00002-of-000002.safetensors')).toHaveLength(1);
  for (const missing of shards) expect(choose(...shards.filter((name) => name !== missing))).toEqual([]);
  expect(choose('model.safetensors', shards[0]!)).toEqual([]);
});

test('a proxy without a scheme is one over http, and a value that is none names its variable', async () => {
  for (const value of [
    '127.0.0.1:3128',
    'localhost:3128',
    'http://user:pass@proxy.example:3128',
    'https://proxy.example',
  ])
    expect(await proxyFetch({ HTTPS_PROXY: value })).toBeTypeOf('function');
  for (const value of ['ftp://SECRET', 'http://', 'user:SECRET@proxy:x']) {
    const message = /^http_proxy is not the address of a proxy, such as [^ ]+$/;
    await expect(proxyFetch({ http_proxy: value, HTTP_PROXY: 'http://x' })).rejects.toThrow(message);
  }
});
