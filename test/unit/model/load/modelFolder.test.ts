/** The files of a model folder, as the text side reads them: nothing outside the folder, nothing that waits or leaks. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ModelFolder } from '../../../../engine/model/load/modelFolder.ts';
import { ModelText } from '../../../../engine/text/format/modelText.ts';

const source = join(import.meta.dirname, '../../../fixtures/chat/llama3');
const PIPE_MAKER = 'mkfifo';
const NAMES = [
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'kvasir.json',
  'config.json',
  'generation_config.json',
];
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

  it.skipIf(process.platform === 'win32')(
    'a model file that is a pipe is refused without waiting for a writer',
    async () => {
      rmSync(join(dir, name));
      execFileSync(PIPE_MAKER, [join(dir, name)]);
      await expect(ModelText.load(dir)).rejects.toThrow(`${name} is not a regular file`);
    },
  );

  it('may start with a byte order mark', async () => {
    const { chatTemplate } = await ModelText.load(dir);
    writeFileSync(join(dir, name), `\ufeff${readFileSync(join(dir, name), 'utf8')}`);
    const marked = await ModelText.load(dir);
    const messages = [{ role: 'user', content: 'x' }];
    expect(marked.chatTemplate?.render(messages)).toBe(chatTemplate?.render(messages));
  });
});

describe.skipIf(process.platform === 'win32')('a snapshot of the Hugging Face cache', () => {
  let repository: string;
  let snapshot: string;
  /** As huggingface_hub lays it out: every file of a snapshot is a link to a blob. */
  function link(name: string, target: string): void {
    rmSync(join(snapshot, name), { force: true });
    symlinkSync(target, join(snapshot, name));
  }
  beforeEach(() => {
    repository = join(outside, 'models--Kvasir--Tiny-0.1B--it');
    snapshot = join(repository, 'snapshots', '0123456789abcdef');
    mkdirSync(snapshot, { recursive: true });
    mkdirSync(join(repository, 'blobs'));
    for (const name of NAMES) {
      cpSync(join(dir, name), join(repository, 'blobs', `b-${name}`));
      link(name, `../../blobs/b-${name}`);
    }
  });

  it('is read through its links and named after its repository', async () => {
    expect((await ModelText.load(snapshot)).manifest.name).toBe('Tiny-0.1B--it');
    const alias = join(outside, 'alias');
    symlinkSync(snapshot, alias);
    expect((await ModelText.load(alias)).manifest.name).toBe('Tiny-0.1B--it');
  });

  it.each([
    ['a file elsewhere', () => join(dir, 'tokenizer.json')],
    [
      'a blob of another repository',
      () => {
        mkdirSync(join(outside, 'models--A--B', 'blobs'), { recursive: true });
        cpSync(join(dir, 'tokenizer.json'), join(outside, 'models--A--B', 'blobs', 'x'));
        return '../../../models--A--B/blobs/x';
      },
    ],
    [
      'a blob that is a link to elsewhere',
      () => {
        symlinkSync(join(dir, 'tokenizer.json'), join(repository, 'blobs', 'evil'));
        return '../../blobs/evil';
      },
    ],
    [
      'a file below the blobs',
      () => {
        mkdirSync(join(repository, 'blobs', 'deep'));
        cpSync(join(dir, 'tokenizer.json'), join(repository, 'blobs', 'deep', 'x'));
        return '../../blobs/deep/x';
      },
    ],
    [
      'another part of the repository',
      () => {
        cpSync(join(dir, 'tokenizer.json'), join(repository, 'x'));
        return '../../x';
      },
    ],
  ])('with a link to %s is refused', async (_, target) => {
    link('tokenizer.json', target());
    await expect(ModelText.load(snapshot)).rejects.toThrow(
      'tokenizer.json is a symbolic link that leaves the model folder',
    );
  });

  it('whose blobs are a link to another folder is refused', async () => {
    rmSync(join(repository, 'blobs'), { recursive: true });
    symlinkSync(dir, join(repository, 'blobs'));
    link('tokenizer.json', '../../blobs/tokenizer.json');
    await expect(ModelText.load(snapshot)).rejects.toThrow('leaves the model folder');
  });

  it('a folder with the layout but not the name of a cache is an ordinary folder', async () => {
    const other = join(outside, 'plain', 'snapshots', 'x');
    mkdirSync(other, { recursive: true });
    mkdirSync(join(outside, 'plain', 'blobs'));
    cpSync(join(dir, 'tokenizer.json'), join(outside, 'plain', 'blobs', 't'));
    symlinkSync('../../blobs/t', join(other, 'tokenizer.json'));
    await expect(ModelText.load(other)).rejects.toThrow('leaves the model folder');
  });
});

it.each([
  ['{\n  "a": 1,\n  "secret": 2 x\n}', 'a.json is not valid JSON at line 3 column 15.'],
  ['{"a": secret\n}', 'a.json is not valid JSON.'],
  ['{"secret": "a', /^a\.json is not valid JSON at line 1 column 14\.$/],
  ['{"secret": ', 'a.json is not valid JSON: it ends too early.'],
  ['["secret"]', 'a.json must hold a JSON object.'],
])('the error for %j has one line and does not quote the text', async (text, message) => {
  writeFileSync(join(dir, 'a.json'), text);
  const error = await (await ModelFolder.open(dir)).readJson('a.json').catch((refusal: Error) => refusal);
  expect((error as Error).message).toMatch(
    message instanceof RegExp ? message : new RegExp(`^${message.replaceAll('.', '\\.')}$`),
  );
});
