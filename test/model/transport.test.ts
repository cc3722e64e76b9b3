/** Both transports around the engine's real bundle with the built-in model: the same answers, and what happens when either side dies. */
import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EngineClient, type EngineState, type GenerateRequest } from '../../src/client/engineClient.ts';
import { engineEnvironment, ProcessTransport } from '../../src/client/processTransport.ts';
import { ThreadTransport } from '../../src/client/threadTransport.ts';
import { MAX_YOUNG_MB } from '../../src/client/transport.ts';
import { t } from '../unit/src/translate.ts';

const temporary = mkdtempSync(join(tmpdir(), 'kvasir-transport-'));
// Below the project, so that the bundle finds onnxruntime as the packaged one does.
const built = resolve('.cache', `engine-under-test-${process.pid}`);
const script = join(built, 'worker.js');
/** Long enough that whatever a test does to it happens in the middle. */
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
});
afterAll(() => {
  rmSync(built, { recursive: true, force: true });
  rmSync(temporary, { recursive: true, force: true });
});

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

function clientOf(kind: 'thread' | 'process', worker = script) {
  const processes: ProcessTransport[] = [];
  const states: EngineState[] = [];
  const output: string[] = [];
  const client = new EngineClient({
    createTransport: () => {
      if (kind === 'thread') return new ThreadTransport(worker, t, (text) => output.push(text));
      const transport = new ProcessTransport(worker, t, (text) => output.push(text));
      processes.push(transport);
      return transport;
    },
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
  return { client, processes, states, output };
}

/** The error that ends it, as soon as it has begun to stream. */
function streaming(client: EngineClient): { begun: Promise<void>; end: Promise<string> } {
  let begin = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  return {
    begun,
    end: client.generate({ ...LONG, onChunk: begin }).then(
      (done) => done.finishReason,
      (error: Error) => error.message,
    ),
  };
}

describe.each(['thread', 'process'] as const)('in a %s', (kind) => {
  test('a request is answered, a large document arrives whole, an end under way is an end', async () => {
    const { client, processes } = clientOf(kind);
    const text = 'const añb = "𝒳";\n'.repeat(60_000);
    expect((await client.generate(SHORT)).tokenIds).toHaveLength(4);
    client.notify({ type: 'documentChanged', docId: 'd', version: 1, path: '/d.ts', text });
    expect(await client.countText(text.slice(0, 1700))).toBeGreaterThan(100);
    const { begun, end } = streaming(client);
    await begun;
    await client.dispose('test');
    expect(await end).toBe('abort');
    expect(client.state.kind).toBe('stopped');
    for (const { pid } of processes) await expect.poll(() => isAlive(pid!)).toBe(false);
  });

  test('without its native library the load fails in one sentence; with it there, the next request works', async () => {
    const alone = join(temporary, `without-library-${kind}`);
    mkdirSync(alone);
    copyFileSync(script, join(alone, 'worker.js'));
    const { client, states, processes } = clientOf(kind, join(alone, 'worker.js'));
    const reason =
      /^onnxruntime, which computes for Kvasir, could not be loaded on \w+-\w+: Cannot find package 'onnxruntime-node' imported from \S+\. Install the package of Kvasir that is made for this platform\.$/;
    await expect(client.generate(SHORT)).rejects.toThrow(
      expect.objectContaining({ code: 'engineFailed', message: expect.stringMatching(reason) }),
    );
    expect(states.filter((state) => state.kind === 'failed')).toHaveLength(1);
    await expect(client.generate(SHORT)).rejects.toThrow(reason);
    expect(processes.length).toBe(kind === 'process' ? 2 : 0);
    symlinkSync(resolve('node_modules'), join(alone, 'node_modules'));
    expect((await client.generate(SHORT)).tokenIds).toHaveLength(4);
    await client.dispose('test');
  });
});

test.each(['thread', 'process'] as const)(
  'in a %s: memory for what has just been made stays small, however much that is',
  async (kind) => {
    const greedy = join(temporary, `greedy-${kind}.js`);
    writeFileSync(
      greedy,
      `const say = (message) => (process.send ? process.send(message) : require('node:worker_threads').parentPort.postMessage(message));
     const kept = [];
     for (let round = 0; round < 300; round++) {
       kept[round % 20] = Array.from({ length: 20_000 }, (_, i) => ({ i }));
     }
     const young = require('node:v8').getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
     say(young.space_size);`,
    );
    const Kind = kind === 'thread' ? ThreadTransport : ProcessTransport;
    const transport = new Kind(greedy, t, () => {});
    const size = await new Promise<number>((resolve) =>
      transport.onMessage((message) => resolve(message as unknown as number)),
    );
    transport.dispose(true);
    expect(size).toBeGreaterThan(0);
    expect(size / 1e6).toBeLessThan(1.1 * MAX_YOUNG_MB);
  },
);

test('killed in the middle of a step: what is pending ends with the reason, one new process, the next request works', async () => {
  const { client, processes, states } = clientOf('process');
  const requests = [streaming(client), streaming(client)];
  await Promise.all(requests.map(({ begun }) => begun));
  const { epoch } = client;
  process.kill(processes[0]!.pid!, 'SIGKILL');
  const sentence = 'The engine stopped: its process was ended by SIGKILL.';
  expect(await Promise.all(requests.map(({ end }) => end))).toEqual([sentence, sentence]);
  expect((await client.generate(SHORT)).tokenIds).toHaveLength(4);
  expect(processes).toHaveLength(2);
  expect(client.epoch).toBe(epoch + 1);
  expect(states.map((state) => state.kind)).not.toContain('failed');

  // Again at once: it stays down, with one message, until it is restarted by hand.
  const again = streaming(client);
  await again.begun;
  process.kill(processes[1]!.pid!, 'SIGKILL');
  expect(await again.end).toBe(sentence);
  await expect(client.generate(SHORT)).rejects.toThrow(
    'The engine stopped again after a restart: its process was ended by SIGKILL.',
  );
  expect(processes).toHaveLength(2);
  expect(states.filter((state) => state.kind === 'failed')).toHaveLength(1);
  await client.stop('restart');
  expect((await client.generate(SHORT)).tokenIds).toHaveLength(4);
  await client.dispose('test');
});

test('the process ends when the editor that started it is killed in the middle of a step', async () => {
  const editor = join(temporary, 'editor.cjs');
  const load = {
    type: 'load',
    requestId: 'l',
    modelDir: resolve('model'),
    cacheDir: join(temporary, 'models'),
    precision: 'int8',
    maxBytes: 0,
    threads: 0,
  };
  const generate = {
    type: 'generate',
    requestId: 'g',
    task: { kind: 'raw', prompt: 'export function add(' },
    priority: 'chat',
    sampling: { maxTokens: 1500, ignoreEos: true },
  };
  writeFileSync(
    editor,
    `
    const child = require('node:child_process').fork(${JSON.stringify(script)}, [], { serialization: 'advanced' });
    for (const message of ${JSON.stringify([load, generate])}) child.send(message);
    child.on('message', ({ type }) => type === 'chunk' && console.log(child.pid));
  `,
  );
  const parent = spawn(process.execPath, [editor], { stdio: ['ignore', 'pipe', 'inherit'] });
  const pid = await new Promise<number>((resolve) =>
    parent.stdout.once('data', (data: Buffer) => resolve(Number.parseInt(data.toString(), 10))),
  );
  expect(isAlive(pid)).toBe(true);
  parent.kill('SIGKILL');
  await expect.poll(() => isAlive(pid), { timeout: 120_000 }).toBe(false);
});

test('a process that cannot be started is an error of the request', async () => {
  const { client } = clientOf('process', join(temporary, 'nowhere.js'));
  await expect(client.generate(SHORT)).rejects.toThrow('The engine stopped: its process ended with code 1.');
  await client.dispose('test');
});

test('the process gets what finds programs, libraries and files, and none of the editor’s secrets or flags', () => {
  const env = {
    PATH: '/bin',
    Path: 'C:\\',
    HOME: '/h',
    LD_LIBRARY_PATH: '/l',
    LC_ALL: 'C',
    SystemRoot: 'C:\\W',
    GITHUB_TOKEN: 's',
    AWS_SECRET_ACCESS_KEY: 's',
    NODE_OPTIONS: '--inspect',
    VSCODE_IPC_HOOK: 'x',
    NODE_CHANNEL_FD: '3',
    ELECTRON_RUN_AS_NODE: '1',
  };
  expect(Object.keys(engineEnvironment(env, {}, 'darwin'))).toEqual([
    'PATH',
    'Path',
    'HOME',
    'LD_LIBRARY_PATH',
    'LC_ALL',
    'SystemRoot',
  ]);
  expect(engineEnvironment({}, { electron: '39' }, 'win32')).toEqual({ ELECTRON_RUN_AS_NODE: '1' });
  expect(engineEnvironment({}, {}, 'linux')).toEqual({ GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1' });
});
