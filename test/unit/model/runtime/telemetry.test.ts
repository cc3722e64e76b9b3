/**
 * onnxruntime collects telemetry and sends it, unless a variable of the process says otherwise before it starts. Whether it
 * does shows in the home folder, where it keeps an id and a queue.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';

const homes: string[] = [];
afterAll(() => {
  for (const home of homes) rmSync(home, { recursive: true, force: true });
});

/** Where one of these is set the library keeps quiet by itself, and nothing would be shown. */
const SERVERS = [
  'CI',
  'TF_BUILD',
  'GITHUB_ACTIONS',
  'GITLAB_CI',
  'CIRCLECI',
  'TRAVIS',
  'JENKINS_URL',
  'CODEBUILD_BUILD_ID',
  'BUILDKITE',
  'TEAMCITY_VERSION',
  'APPVEYOR',
  'BITBUCKET_BUILD_NUMBER',
];

/** What a Node process that runs `code` (or the script that it starts with) leaves in a new home folder, Kvasir's own cache left out. */
function leftInHome(...args: string[]): string[] {
  const home = mkdtempSync(path.join(tmpdir(), 'kvasir-home-'));
  homes.push(home);
  const env = { ...process.env };
  for (const name of ['ORT_DISABLE_TELEMETRY', 'XDG_CACHE_HOME', ...SERVERS]) delete env[name];
  execFileSync(process.execPath, args, {
    env: { ...env, HOME: home, USERPROFILE: home, LOCALAPPDATA: home },
    stdio: 'pipe',
  });
  return readdirSync(home, { recursive: true, encoding: 'utf8' }).filter(
    (name) => !/^(\.cache([\\/]kvasir\b.*)?|Library|Library[\\/]Caches([\\/]kvasir\b.*)?|kvasir\b.*)$/.test(name),
  );
}

const COMPLETE = { kind: 'complete', docId: 'a', offset: 10 };
const load = (cacheDir: string) => ({
  type: 'load',
  requestId: 'l',
  modelDir: path.resolve('model'),
  cacheDir,
  precision: 'int8',
  maxBytes: 0,
  threads: 1,
});
/** Loads the model in the engine's worker as the extension starts it, asks once, and ends. */
const WORKER = `
const { SHARE_ENV, Worker } = require('node:worker_threads');
const worker = new Worker(${JSON.stringify(path.resolve('dist/worker.js'))}, { env: SHARE_ENV });
worker.on('message', (message) => {
  if (message.type === 'ready') worker.postMessage({ ...${JSON.stringify(load(''))}, cacheDir: process.env.HOME + '/.cache/kvasir' });
  else if (message.requestId === 'l' && message.type === 'reply') {
    worker.postMessage({ type: 'documentChanged', docId: 'a', version: 1, path: 'a.ts', text: 'const a = ' });
    worker.postMessage({ type: 'generate', requestId: 'g', task: ${JSON.stringify(COMPLETE)}, priority: 'completion' });
  } else if (message.type === 'done') process.exit(0);
  else if (message.type === 'error') process.exit(1);
});`;

test('the command line writes no telemetry id', () => {
  expect(leftInHome('dist/cli.js', 'complete', '--file', 'src/config.ts', '--line', '20', '--column', '12')).toEqual(
    [],
  );
});

test('the worker thread writes no telemetry id', () => {
  expect(leftInHome('-e', WORKER)).toEqual([]);
});

test('without the environment variable a telemetry id is written', () => {
  // The library writes from a thread of its own: the process waits for it, as otherwise its end may come first.
  const code = `
const { existsSync, readdirSync } = require('node:fs');
require('onnxruntime-node').InferenceSession.create(Buffer.alloc(4)).catch(() => {});
const seen = () => existsSync(process.env.HOME) && readdirSync(process.env.HOME, { recursive: true }).some((name) => name.includes('deviceid'));
const until = Date.now() + 30_000;
setInterval(() => { if (seen() || Date.now() > until) process.exit(0); }, 50);`;
  // On Linux; elsewhere the library keeps it where the system does.
  if (process.platform === 'linux') expect(leftInHome('-e', code).join(' ')).toContain('deviceid');
});
