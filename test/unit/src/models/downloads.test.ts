/** Downloads from the editor's side: what is said, what is offered again, and what needs no network at all. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FIRST_MODEL } from '../../../../engine/download/knownModels.ts';
import { downloadLabel, ProgressLine } from '../../../../src/models/downloadLines.ts';
import { FakeHub, unlike } from '../../../support/hub/fakeHub.ts';
import { english } from '../../../support/editor/translate.ts';

const world = vi.hoisted(() => ({
  told: [] as string[],
  progress: [] as string[],
  /** What the user presses, by the text of the message. */
  answers: [] as (string | undefined)[],
  used: [] as string[],
  /** Presses "Cancel" of the progress that is shown. */
  cancels: [] as (() => void)[],
}));
vi.mock('../../../../src/vscode.ts', () => {
  const tell = async (text: string) => {
    world.told.push(text);
    return world.answers.shift();
  };
  return {
    l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
    env: { language: 'en' },
    ProgressLocation: { Notification: 15, Window: 10 },
    window: {
      showErrorMessage: tell,
      showInformationMessage: tell,
      showWarningMessage: tell,
      showInputBox: async () => world.answers.shift(),
      showQuickPick: async (items: { label: string }[]) => items.find(({ label }) => label === world.answers[0]),
      withProgress: (_: unknown, work: (progress: unknown, cancel: unknown) => unknown) =>
        work(
          { report: ({ message }: { message: string }) => world.progress.push(message) },
          { onCancellationRequested: (cancel: () => void) => void world.cancels.push(cancel) },
        ),
    },
  };
});
vi.mock('../../../../src/models/useModel.ts', () => ({
  useModel: async (setting: string) => void world.used.push(setting),
}));
const { Downloads } = await import('../../../../src/models/downloads.ts');

const BYTES = unlike(200_000, 1);
let fake: FakeHub;
let folder: string;
beforeEach(async () => {
  const files = { 'm-q4_0.gguf': unlike(900, 2), 'm-q8_0.gguf': BYTES };
  fake = await new FakeHub({ 'o/m': files, 'o/none': {}, [FIRST_MODEL.repository]: files }).start();
  folder = mkdtempSync(path.join(tmpdir(), 'kvasir-downloads-'));
  vi.stubEnv('HF_HUB_CACHE', folder);
  vi.stubEnv('HF_ENDPOINT', fake.endpoint);
  for (const list of Object.values(world)) list.length = 0;
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await fake.stop();
  rmSync(folder, { recursive: true, force: true });
});

function setUp(availableBytes = 64e9, ...running: { repository: string }[]) {
  const state = new Map<string, unknown>(running.map((each) => [`kvasir.download:${each.repository}`, each]));
  const secrets = new Map<string, string>();
  const context = {
    globalState: {
      keys: () => [...state.keys()],
      get: (key: string) => state.get(key),
      update: async (key: string, value: unknown) =>
        void (value === undefined ? state.delete(key) : state.set(key, value)),
    },
    secrets: {
      get: async (key: string) => secrets.get(key),
      store: async (key: string, value: string) => void secrets.set(key, value),
    },
  };
  const host = { client: { machine: async () => ({ memory: { availableBytes } }) } };
  const settings = { current: { precision: 'int8', model: '' } };
  const downloads = new Downloads(context as never, host as never, settings as never);
  return { downloads, state, secrets, context };
}

const WANTED = { repository: 'o/m', revision: 'main', format: 'm-q8_0.gguf', title: 'M' };
const blobs = path.join('models--o--m', 'blobs');

test('a line says how much, how fast and how long, and after a cut only that', () => {
  let now = 0;
  const line = new ProgressLine(english, () => now);
  const at = (doneBytes: number, state: 'loading' | 'retrying' | 'waiting' | 'checking' = 'loading') =>
    line.line({ doneBytes, totalBytes: 1.9e9, state });
  expect(at(0)).toBe('0 B of 1.9 GB');
  now = 2000;
  expect(at(20e6)).toBe('20.0 MB of 1.9 GB · 10.0 MB/s · 3 min left');
  now = 12_500;
  expect(at(1.82e9)).toMatch(/· \d+ MB\/s · 1 s left$/);
  expect(at(1.82e9, 'retrying')).toBe('1.8 GB of 1.9 GB · the connection was cut; trying again');
  expect(at(1.82e9, 'waiting')).toBe('1.8 GB of 1.9 GB · loaded by another window');
  expect(at(1e9, 'checking')).toBe('1.0 GB of 1.9 GB · checking what is here');
  expect(downloadLabel(FIRST_MODEL, english)).toBe('Download Qwen2.5-Coder 1.5B (about 1.9 GB)');
});

test('the first model is brought in its format, and loaded without another click', async () => {
  const { downloads, state } = setUp();
  await downloads.known();
  expect(world.used).toEqual([expect.stringMatching(/m-q8_0\.gguf$/)]);
  expect([world.told, [...state]]).toEqual([[], []]);
  // It is here now: no network is needed.
  await fake.stop();
  await downloads.known(FIRST_MODEL.id);
  expect(world.used).toHaveLength(2);
  await fake.start();
});

test('a model that needs more memory than is free is brought only after a question', async () => {
  const { downloads } = setUp(1e9);
  await downloads.known();
  expect(world.told).toEqual(['Qwen2.5-Coder 1.5B needs 1.7 GB of memory, and 1.0 GB are free.']);
  expect([world.used, fake.seen]).toEqual([[], []]);
  world.answers = ['Download Anyway'];
  await downloads.known();
  expect(world.used).toHaveLength(1);
});

test('of a repository with several files one is asked for; a name that is no repository is not sent', async () => {
  const { downloads } = setUp();
  world.answers = [' o/m ', 'm-q4_0.gguf'];
  await downloads.other();
  expect(world.used).toEqual([expect.stringMatching(/m-q4_0\.gguf$/)]);
  fake.seen.length = 0;
  world.answers = ['../../x'];
  await downloads.other();
  expect(world.told).toEqual(['Kvasir: ../../x is not the name of a repository; it has the form owner/name.']);
  expect(fake.seen).toEqual([]);
});

test('a gated repository asks for a token, keeps it for this hub, and goes on', async () => {
  fake.faults.token = 'mine';
  const { downloads, secrets } = setUp();
  world.answers = ['Enter Access Token', ' mine '];
  await downloads.start(WANTED);
  await expect.poll(() => world.used).toHaveLength(1);
  expect(world.told).toEqual([
    expect.stringMatching(/gives o\/m only to accounts with access: it needs an access token/),
  ]);
  expect([...secrets]).toEqual([[`kvasir.hubToken:${fake.endpoint}`, 'mine']]);
});

test('a token that cannot be sent can be entered again', async () => {
  fake.faults.token = 'mine';
  const { downloads, secrets } = setUp();
  secrets.set(`kvasir.hubToken:${fake.endpoint}`, 'two lines\nof it');
  world.answers = ['Enter Access Token', 'mine'];
  await downloads.start(WANTED);
  await expect.poll(() => world.used).toHaveLength(1);
  expect(world.told).toHaveLength(1);
  expect(world.told[0]).not.toContain('of it');
  expect([...secrets.values()]).toEqual(['mine']);
});

test('what the end of the editor has interrupted is offered, and nothing is asked of the hub before the click', async () => {
  const { downloads, state } = setUp(64e9, WANTED);
  await downloads.offerRest();
  expect(world.told).toEqual(['Kvasir: the download of M was interrupted.']);
  expect(fake.seen).toEqual([]);
  expect(state.get('kvasir.download:o/m')).toEqual(WANTED);
  world.answers = ['Continue'];
  await downloads.offerRest();
  expect(world.used).toEqual([expect.stringMatching(/m-q8_0\.gguf$/)]);
});

test('discarding removes the part; another window that is at it is not disturbed', async () => {
  mkdirSync(path.join(folder, blobs), { recursive: true });
  const file = (name: string) => path.join(folder, blobs, `${'a'.repeat(64)}.kvasir.${name}`);
  writeFileSync(file('incomplete'), 'part');
  writeFileSync(file('lock'), `${process.pid} ${hostname()} 00\n`);
  const { downloads } = setUp(64e9, WANTED);
  await downloads.offerRest();
  expect([world.told, existsSync(file('incomplete'))]).toEqual([[], true]);
  // A process that has ended holds nothing.
  writeFileSync(file('lock'), `4194305 ${hostname()} 00\n`);
  world.answers = ['Discard'];
  await downloads.offerRest();
  expect(readdirSync(path.join(folder, blobs)).filter((name) => name.endsWith('incomplete'))).toEqual([]);
  expect(fake.seen).toEqual([]);
});

test('each of several interrupted downloads is offered, and keeps its record while another one runs', async () => {
  const other = { repository: FIRST_MODEL.repository, revision: 'main', title: 'Other' };
  const { downloads, state } = setUp(64e9, WANTED, other);
  await downloads.start({ ...WANTED, repository: 'o/none' });
  await downloads.start(WANTED);
  expect([...state.values()]).toEqual([other]);
  state.set('kvasir.download:o/m', WANTED);
  world.told.length = 0;
  await downloads.offerRest();
  expect(world.told.sort()).toEqual(['M', 'Other'].map((title) => `Kvasir: the download of ${title} was interrupted.`));
});

test('a second click says that the download runs; a hub that does not answer can be cancelled', async () => {
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  try {
    vi.stubEnv('HF_ENDPOINT', `http://127.0.0.1:${(silent.address() as AddressInfo).port}`);
    const { downloads, state } = setUp();
    const running = downloads.start(WANTED);
    await expect.poll(() => world.cancels).toHaveLength(1);
    await downloads.start(WANTED);
    expect(world.told).toEqual(['Kvasir: the download of M is running already.']);
    world.cancels[0]!();
    await running;
    expect([world.told.length, world.used, [...state]]).toEqual([1, [], []]);
    // It can be started again.
    void downloads.start(WANTED);
    await expect.poll(() => world.cancels).toHaveLength(2);
    downloads.dispose();
  } finally {
    silent.closeAllConnections();
    silent.close();
  }
});

test('a secret storage that fails is one message', async () => {
  fake.faults.token = 'mine';
  const { downloads, context } = setUp();
  context.secrets.store = async () => {
    throw new Error('no keyring');
  };
  world.answers = ['Enter Access Token', 'mine'];
  await downloads.start(WANTED);
  await expect.poll(() => world.told).toHaveLength(2);
  expect(world.told[1]).toBe('Kvasir: no keyring');
  context.secrets.get = async () => {
    throw new Error('locked');
  };
  await downloads.start(WANTED);
  await expect.poll(() => world.told).toHaveLength(3);
  expect(world.told[2]).toBe('Kvasir: locked');
});
