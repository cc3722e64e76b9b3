/** The files of a model folder, as the text side reads them: nothing outside the folder, nothing that waits or leaks. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ModelFolder } from '../../engine/modelFolder.ts';
import { ModelText } from '../../engine/text/modelText.ts';

const source = join(import.meta.dirname, '../fixtures/chat/llama3');
const PIPE_MAKER = 'mkfifo';
const NAMES = ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja', 'kvasir.json', 'config.json', 'generation_config.json'];
let dir: string;
let outside: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kvasir-folder-'));
  outside = mkdtempSync(join(tmpdir(), 'kvasir-outside-'));
  for (const name of ['kvasir.json', 'config.json', 'generation_config.json']) writeFileSync(join(dir, name), '{}');
  cpSync(source, dir, { recursive: true });
});
afterEach(() => {
  for (const folder of [dir, outside]) rmSync(folder, { recursive: true });
});

describe.each(NAMES)('%s', (name) => {
  it('is refused when it is a link out of the folder', async () => {
    cpSync(join(dir, name), join(outside, name));
    rmSync(join(dir, name));
    symlinkSync(join(outside, name), join(dir, name));
    await expect(ModelText.load(dir)).rejects.toThrow(`${name} is a symbolic link that leaves the model folder`);
  });

  it.skipIf(process.platform === 'win32')('is refused when it is a pipe, without waiting for a writer', async () => {
    rmSync(join(dir, name));
    execFileSync(PIPE_MAKER, [join(dir, name)]);
    await expect(ModelText.load(dir)).rejects.toThrow(`${name} is not a regular file`);
  });

  it('may start with a byte order mark', async () => {
    const { chatTemplate } = await ModelText.load(dir);
    writeFileSync(join(dir, name), `\ufeff${readFileSync(join(dir, name), 'utf8')}`);
    const marked = await ModelText.load(dir);
    const messages = [{ role: 'user', content: 'x' }];
    expect(marked.chatTemplate?.render(messages)).toBe(chatTemplate?.render(messages));
  });
});

it.each([
  ['{\n  "a": 1,\n  "secret": 2 x\n}', 'a.json is not valid JSON at line 3 column 15.'],
  ['{"a": secret\n}', 'a.json is not valid JSON.'],
  ['{"secret": "a', /^a\.json is not valid JSON at line 1 column 14\.$/],
  ['{"secret": ', 'a.json is not valid JSON: it ends too early.'],
  ['["secret"]', 'a.json must hold a JSON object.'],
])('the mistake in %j is told in one line, without the text', async (text, message) => {
  writeFileSync(join(dir, 'a.json'), text);
  const error = await (await ModelFolder.open(dir)).readJson('a.json').catch((refusal: Error) => refusal);
  expect((error as Error).message).toMatch(message instanceof RegExp ? message : new RegExp(`^${message.replaceAll('.', '\\.')}$`));
});
