/**
 * The worker thread with the engine's real bundle and the built-in model: answers, documents, a missing native library.
 */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EngineClient, type GenerateRequest } from '../../src/client/engineClient.ts';
import type { EngineState } from '../../src/client/engineLifecycle.ts';
import { ThreadTransport, MAX_YOUNG_MB } from '../../src/client/transport.ts';
import { t } from '../support/editor/translate.ts';
import { linkNative } from '../support/linkNative.ts';

const temporary = mkdtempSync(join(tmpdir(), 'kvasir-transport-'));
// Below the project, so that the bundle finds onnxruntime as the packaged one does.
const built = resolve('.cache', `engine-under-test-${process.pid}`);
const script = join(built, 'worker.js');
/** Long enough to be aborted in the middle. */
const LONG: GenerateRequest = {
  task: () => ({ kind: 'raw', prompt: 'export function add(' }),
  priority: 'chat',
  sampling: { maxTokens: 1500, ignoreEos: true },
};
const SHORT: GenerateRequest = { ...LONG, sampling: { maxTokens: 4, ignoreEos: true } };

beforeAll(() => {
  buildSync({
    entryPoints: ['engine/server/worker.ts'],
    outfile: script,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    external: ['onnxruntime-node'],
    logLevel: 'error',
  });
  linkNative(built);
});
afterAll(() => {
  rmSync(built, { recursive: true, force: true });
  rmSync(temporary, { recursive: true, force: true });
});

function clientOf(worker = script) {
  const states: EngineState[] = [];
  const client = new EngineClient({
    createTransport: () => new ThreadTransport(worker, t, () => {}),
    loadOptions: () => ({
      modelDir: resolve('model'),
      cacheDir: join(temporary, 'models'),
      precision: 'int8',
      maxBytes: 0,
      threads: 0,
    }),
    onState: (state) => states.push(state),
    onActivity: () => {},
    log: () => {},
    t,
  });
  return { client, states };
}

test('a request is answered, a large document arrives complete, and a stop ends a running request', async () => {
  const { client } = clientOf();
  const text = 'const añb = "𝒳";\n'.repeat(60_000);
  expect((await client.generate(SHORT)).tokenIds).toHaveLength(4);
  client.notify({ type: 'documentChanged', docId: 'd', version: 1, path: '/d.ts', text });
  expect(await client.countText(text.slice(0, 1700))).toBeGreaterThan(100);
  let begin = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const end = client.generate({ ...LONG, onChunk: begin }).then((done) => done.finishReason);
  await begun;
  await client.dispose('test');
  expect(await end).toBe('abort');
  expect(client.state.kind).toBe('stopped');
});

test('without its native library the load fails in one sentence; with it, the next request works', async () => {
  const alone = join(temporary, 'without-library');
  mkdirSync(alone);
  copyFileSync(script, join(alone, 'worker.js'));
  const { client, states } = clientOf(join(alone, 'worker.js'));
  const reason =
    /^onnxruntime could not be loaded on \w+-\w+: Cannot find package 'onnxruntime-node' imported from \S+\. Install the Kvasir package for this platform\.$/;
  await expect(client.generate(SHORT)).rejects.toThrow(
    expect.objectContaining({ code: 'engineFailed', message: expect.stringMatching(reason) }),
  );
  expect(states.filter((state) => state.kind === 'failed')).toHaveLength(1);
  await expect(client.generate(SHORT)).rejects.toThrow(reason);
  symlinkSync(resolve('node_modules'), join(alone, 'node_modules'));
  expect((await client.generate(SHORT)).tokenIds).toHaveLength(4);
  await client.dispose('test');
});

test('the young heap generation stays small, however much is allocated', async () => {
  const greedy = join(temporary, 'greedy.js');
  writeFileSync(
    greedy,
    `const kept = [];
     for (let round = 0; round < 300; round++) {
       kept[round % 20] = Array.from({ length: 20_000 }, (_, i) => ({ i }));
     }
     const spaces = require('node:v8').getHeapSpaceStatistics();
     const young = spaces.find(({ space_name }) => space_name === 'new_space');
     require('node:worker_threads').parentPort.postMessage(young.space_size);`,
  );
  const transport = new ThreadTransport(greedy, t, () => {});
  const size = await new Promise<number>((resolve) =>
    transport.onMessage((message) => resolve(message as unknown as number)),
  );
  transport.dispose(true);
  expect(size).toBeGreaterThan(0);
  expect(size / 1e6).toBeLessThan(1.1 * MAX_YOUNG_MB);
});
