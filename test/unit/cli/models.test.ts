/** `kvasir models`, and models called by name on the command line: with a home folder of the test's own. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BundledCli } from '../../support/cli/bundledCli.ts';

const GGUF = path.resolve('test/fixtures/models/gguf-qwen2/gguf-qwen2-q8_0.gguf');
const DIGEST = createHash('sha256').update(readFileSync(GGUF)).digest('hex');
const LIBRARY = '.ollama/models/manifests/registry.ollama.ai/library';

let cli: BundledCli;
let home: string;
let blob: string;
beforeAll(() => {
  cli = new BundledCli();
  symlinkSync(path.resolve('model'), path.join(path.dirname(cli.file), '../model'), 'junction');
  home = mkdtempSync(path.join(tmpdir(), 'kvasir-models-'));
  blob = path.join(home, '.ollama/models/blobs', `sha256-${DIGEST}`);
  cpSync(GGUF, blob);
  mkdirSync(path.join(home, LIBRARY, 'tiny-coder'), { recursive: true });
  const layer = { mediaType: 'application/vnd.ollama.image.model', digest: `sha256:${DIGEST}` };
  writeFileSync(path.join(home, LIBRARY, 'tiny-coder/latest'), JSON.stringify({ layers: [layer] }));
  writeFileSync(path.join(home, LIBRARY, 'tiny-coder/cloud'), JSON.stringify({ layers: [] }));
  const snapshot = path.join(home, '.cache/huggingface/hub/models--someone--Tiny/snapshots/abc');
  cpSync(path.resolve('test/fixtures/models/qwen2-untied-bf16'), snapshot, { recursive: true });
  mkdirSync(path.join(home, 'mine/strange'), { recursive: true });
  writeFileSync(path.join(home, 'mine/strange/config.json'), '{"model_type":"no such family"}');
});
afterAll(() => {
  cli.remove();
  rmSync(home, { recursive: true, force: true });
});

function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const local = path.join(home, 'AppData', 'Local');
  const env = { PATH: process.env.PATH, HOME: home, USERPROFILE: home, LOCALAPPDATA: local };
  return spawnSync(process.execPath, [cli.file, ...args], { env, encoding: 'utf8' });
}

test('lists what can run by where it comes from, with its path, and last the reasons of what cannot', () => {
  const { status, stdout, stderr } = run('models', '--folder', path.join(home, 'mine'));
  expect([status, stderr]).toEqual([0, '']);
  // The service of Linux has a folder that may exist on the machine of the test.
  const lines = stdout.split('\n');
  const after = (title: string) => lines[lines.indexOf(title) + 1];
  expect(after('built in')).toMatch(/^ {2}kvasir-starter +[\d.]+ MB +qwen3 int8 +completions, chat$/);
  expect(after('Hugging Face cache')).toMatch(/^ {2}someone\/Tiny +[\d.]+ MB +qwen2 BF16 +completions, chat, edits$/);
  expect(after('Ollama')).toMatch(/^ {2}tiny-coder:latest +191 kB +qwen2 Q8_0 +completions, chat, edits$/);
  expect(stdout).toContain(`\n    ${blob}\n`);
  const refused = stdout.slice(stdout.indexOf('\ncannot run\n'));
  expect(refused).toMatch(/\n {2}strange \(your folders\): config\.json: model_type is "no such family".*\n/);
  expect(refused).toContain('\n  tiny-coder:cloud (Ollama): It is no GGUF file');
  expect(refused).toMatch(/Looked through: your folders \(.*\), Hugging Face cache \(.*\), Ollama \(/);
});

test('a folder that does not exist is named', () => {
  const missing = path.join(home, 'gone');
  expect(run('models', '--folder', missing)).toMatchObject({
    status: 1,
    stdout: '',
    stderr: `kvasir: --folder ${missing}: no such folder\n`,
  });
});

test('--json prints one line for each, also for those that cannot run', () => {
  const { status, stdout } = run('models', '--json');
  expect(status).toBe(0);
  const listed = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { name: string });
  expect(listed.find(({ name }) => name === 'tiny-coder:latest')).toEqual({
    type: 'model',
    name: 'tiny-coder:latest',
    aliases: ['tiny-coder'],
    source: 'ollama',
    path: blob,
    bytes: readFileSync(GGUF).length,
    canRun: true,
    architecture: 'qwen2',
    format: 'Q8_0',
    parameters: 164_672,
    contextTokens: 512,
    canComplete: true,
    canChat: true,
    canEdit: true,
  });
  expect(listed.find(({ name }) => name === 'tiny-coder:cloud')).toMatchObject({
    canRun: false,
    reason: expect.stringContaining('no GGUF file'),
  });
});

test('a name of Ollama or of the hub works like a path', () => {
  const json = (...args: string[]) => JSON.parse(run(...args, '--json').stdout.split('\n')[0]!) as object;
  expect(json('inspect', 'tiny-coder')).toMatchObject({ modelDir: blob, format: 'Q8_0' });
  expect(json('inspect', 'someone/Tiny')).toMatchObject({ architecture: 'qwen2', format: 'BF16' });
  const cache = path.join(home, 'cache');
  const generate = (model: string) =>
    run('generate', '--model', model, '--cache-dir', cache, '--prompt', 'x', '--max-tokens', '3');
  const byName = generate('tiny-coder:latest');
  expect(byName.status).toBe(0);
  expect(byName.stdout).toBe(generate(blob).stdout);
});

test.each([
  ['nothing:1b', /^kvasir: No model on this machine is called nothing:1b\. Looked through: .*\)\.\n$/],
  ['hf.co/a/b:Q4_K_M', /^kvasir: No model on this machine is called hf\.co\/a\/b:Q4_K_M\./],
  ['a/b', /Looked through: .* To use one of the Hugging Face hub, run `kvasir download a\/b`\.\n$/],
  ['tiny-coder:cloud', /^kvasir: tiny-coder:cloud cannot be used: It is no GGUF file/],
  ['a/b/c', /^kvasir: The model folder a\/b\/c cannot be opened: there is no such folder\.\n$/],
])('%s is a failure in one line', (name, line) => {
  const { status, stdout, stderr } = run('inspect', name);
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(line);
});
