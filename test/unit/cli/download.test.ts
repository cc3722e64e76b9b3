/** `kvasir download` as a process: its output, two at once, one that is killed, and the proxies of the environment. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { BundledCli } from '../../support/cli/bundledCli.ts';
import { FakeHub, unlike } from '../../support/hub/fakeHub.ts';

const SIZE = 2_000_000;
const FILES = { 'm-q4_0.gguf': unlike(5000, 1), 'm-q8_0.gguf': unlike(SIZE, 2) };

let cli: BundledCli;
beforeAll(() => {
  cli = new BundledCli();
});
afterAll(() => cli.remove());

let fake: FakeHub;
let folder: string;
beforeEach(async () => {
  fake = await new FakeHub({ 'o/m': FILES, 'o/one': { 'only.gguf': unlike(100, 3) }, 'o/none': {} }).start();
  folder = mkdtempSync(path.join(tmpdir(), 'kvasir-download-'));
});
afterEach(async () => {
  await fake.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Running {
  child: ChildProcess;
  ended: Promise<{ status: number | null; stdout: string; stderr: string }>;
}

function start(args: string[], env: Record<string, string> = {}): Running {
  const own = { HF_ENDPOINT: fake.endpoint, HF_HUB_CACHE: folder, PATH: process.env.PATH, ...env };
  const child = spawn(process.execPath, [cli.file, 'download', ...args], { env: own });
  const [out, err]: [string[], string[]] = [[], []];
  child.stdout.on('data', (piece: Buffer) => out.push(piece.toString()));
  child.stderr.on('data', (piece: Buffer) => err.push(piece.toString()));
  const ended = new Promise<Awaited<Running['ended']>>((resolve) =>
    child.on('close', (status) => resolve({ status, stdout: out.join(''), stderr: err.join('') })),
  );
  return { child, ended };
}
const run = (args: string[], env?: Record<string, string>) => start(args, env).ended;
const loaded = async (bytes: number) =>
  expect.poll(() => fake.loads.reduce((sum, { sent }) => sum + sent, 0), { timeout: 60_000 }).toBeGreaterThan(bytes);

test('prints the path of the model; of several it asks for one by name or format', async () => {
  const one = await run(['o/one']);
  expect(one).toMatchObject({ status: 0, stderr: expect.stringContaining('only.gguf, 100 B') });
  expect(readFileSync(one.stdout.trim())).toHaveLength(100);
  const several = await run(['o/m']);
  expect(several).toMatchObject({ status: 1, stdout: '' });
  expect(several.stderr).toMatch(
    /name one of these with --file:\n +5\.0 kB {2}m-q4_0\.gguf\n +2\.0 MB {2}m-q8_0\.gguf/,
  );
  const { stdout } = await run(['o/m', '--file', 'q4_0', '--json']);
  const line = JSON.parse(stdout) as { path: string };
  expect(line).toMatchObject({ type: 'downloaded', repository: 'o/m', commit: fake.commit, bytes: 5000 });
  expect(readFileSync(line.path)).toEqual(FILES['m-q4_0.gguf']);
});

test('what cannot be done is one line: no such repository, no model, no access, no name', async () => {
  const missing = await run(['o/missing']);
  expect(missing).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^kvasir: o\/missing does not exist on .*\n$/),
  });
  expect((await run(['o/none'])).stderr).toMatch(/^kvasir: o\/none has no GGUF file and no folder .*\n$/);
  expect(await run([])).toMatchObject({ status: 2, stderr: expect.stringContaining('owner/name') });
  fake.faults.token = 'secret-of-mine';
  expect((await run(['o/one'])).stderr).toMatch(/^kvasir: 127\.0\.0\.1:\d+ gives o\/one only to accounts .*\n$/);
  expect(await run(['o/one'], { HF_TOKEN: 'secret-of-mine' })).toMatchObject({ status: 0 });
});

test('a process that is killed leaves its part, and the next one continues it', async () => {
  fake.faults.delayMs = 30;
  const { child, ended } = start(['o/m', '--file', 'q8_0']);
  await loaded(300_000);
  child.kill('SIGKILL');
  await ended;
  fake.faults.delayMs = 0;
  fake.seen.length = 0;
  const { status, stdout } = await run(['o/m', '--file', 'q8_0']);
  expect(status).toBe(0);
  expect(readFileSync(stdout.trim())).toEqual(FILES['m-q8_0.gguf']);
  expect(fake.loads).toMatchObject([{ range: expect.stringMatching(/^bytes=[1-9]\d*-$/) }]);
});

test('two processes load each byte once, also when the first one is killed', async () => {
  fake.faults.delayMs = 30;
  const first = start(['o/m', '--file', 'q8_0']);
  await loaded(300_000);
  // Nothing more arrives while the others start.
  fake.faults.delayMs = 600_000;
  const second = start(['o/m', '--file', 'q8_0']);
  const third = start(['o/m', '--file', 'q8_0']);
  await expect.poll(() => fake.seen.filter(({ url }) => url.includes('/tree/')).length, { timeout: 60_000 }).toBe(3);
  first.child.kill('SIGKILL');
  await first.ended;
  fake.faults.delayMs = 30;
  for (const { status, stdout } of await Promise.all([second.ended, third.ended])) {
    expect(status).toBe(0);
    expect(readFileSync(stdout.trim())).toEqual(FILES['m-q8_0.gguf']);
  }
  // The third one waited for the second.
  expect(fake.loads).toHaveLength(2);
});

test.skipIf(process.platform === 'win32')('Ctrl+C keeps the part and says so', async () => {
  fake.faults.delayMs = 30;
  const { child, ended } = start(['o/m', '--file', 'q8_0']);
  await loaded(300_000);
  child.kill('SIGINT');
  expect(await ended).toMatchObject({ status: 1, stderr: expect.stringContaining('run the same command to continue') });
});

test('the proxy of the environment is used, but not for the hosts of NO_PROXY', async () => {
  const asked: string[] = [];
  const proxy: Server = createServer();
  proxy.on('connect', ({ url = '' }: IncomingMessage, socket: Socket) => {
    asked.push(url);
    // hub.invalid has no address anywhere: only the proxy knows it.
    const port = Number(url.split(':')[1]);
    const through = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      through.pipe(socket).pipe(through);
    });
    for (const end of [through, socket]) end.on('error', () => {});
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = new URL(fake.endpoint);
    const HTTP_PROXY = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const HF_ENDPOINT = `http://hub.invalid:${port}`;
    const env = { HTTP_PROXY, HF_ENDPOINT, NO_PROXY: '127.0.0.1' };
    expect(await run(['o/one'], env)).toMatchObject({ status: 0 });
    expect(new Set(asked)).toEqual(new Set([`hub.invalid:${port}`]));
    expect((await run(['o/one'], { HF_ENDPOINT })).stderr).toMatch(/^kvasir: hub\.invalid:\d+ cannot be reached: E/);
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});
