/** GGUF files that are cut, lie or hold something else are refused in one sentence. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RequestError } from '../../../../../engine/protocol/errors.ts';
import { inspectFolder } from '../../../../../engine/server/inspection.ts';
import { good, hostileFiles, inParts, quantised } from '../../../../support/model/hostileGguf.ts';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'kvasir-hostile-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function refusal(bytes: Buffer, name = 'x.gguf'): Promise<string> {
  const file = path.join(dir, name);
  writeFileSync(file, bytes);
  const error = await inspectFolder(file).then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error === null) return '';
  if (!(error instanceof RequestError)) throw error;
  return error.message;
}

const files = hostileFiles();

test('there are a hundred of them, and the file that they are made from is read', async () => {
  expect(files.length).toBeGreaterThanOrEqual(100);
  expect(await refusal(good)).toBe('');
});

test.each(files)('%s', async (_, bytes) => {
  const message = await refusal(bytes);
  expect(message).toMatch(/^[^\n]{10,600}\.$/);
  expect(message).not.toMatch(/\. [A-Z]/);
  expect(message).not.toMatch(/(?:config|tokenizer)\.json/);
});

test.each([
  ['a million layers', 'x.gguf: llama.block_count is 1000000; it must be a positive integer, at most 1024.'],
  ['a negative rope', 'x.gguf: llama.rope.freq_base is -1; it must be a number from 1 to 1000000000000000000.'],
  [
    'an epsilon that is no number',
    'x.gguf: llama.attention.layer_norm_rms_epsilon is NaN; it must be a number: choose another file.',
  ],
  [
    'rope factors of another number',
    'x.gguf: rope_freqs.weight has 8 numbers; it must have 16, half of what is rotated of a head: choose another file.',
  ],
  [
    'merges of tokens that do not exist',
    'x.gguf: tokenizer.ggml.merges[0] needs the token "zz", which has no id: download the file again.',
  ],
  [
    'more parts',
    'x.gguf: the model has 3 parts, but the name does not say that it is a part: give the file its own name again.',
  ],
])('%s: the message names the key in the file', async (name, expected) => {
  const [, bytes] = files.find(([each]) => each === name)!;
  expect(await refusal(bytes)).toBe(expected);
});

test('kvasir.json of a file is beside it, and says nothing of other files', async () => {
  writeFileSync(path.join(dir, 'kvasir.json'), '{"name":"of a folder"}');
  writeFileSync(path.join(dir, 'a.gguf.kvasir.json'), '{"name":"mine"}');
  writeFileSync(path.join(dir, 'b.gguf.kvasir.json'), '{"can":{"complete":true}}');
  for (const name of ['a', 'b', 'c']) writeFileSync(path.join(dir, `${name}.gguf`), good);
  expect((await inspectFolder(path.join(dir, 'a.gguf'))).name).toBe('mine');
  expect((await inspectFolder(path.join(dir, 'c.gguf'))).name).toBe('c');
  await expect(inspectFolder(path.join(dir, 'b.gguf'))).rejects.toThrow(
    /^b\.gguf\.kvasir\.json: can\.complete is true/,
  );
});

test('a file that does not exist is called a file', async () => {
  await expect(inspectFolder('/x/y.gguf')).rejects.toThrow(
    'The GGUF file /x/y.gguf cannot be opened: there is no such file; check its path.',
  );
});

test.skipIf(process.platform === 'win32')(
  'parts in a folder of a Hugging Face snapshot are links to blobs',
  async () => {
    const repository = path.join(dir, 'models--o--r');
    const folder = path.join(repository, 'snapshots', 'abc', 'BF16');
    mkdirSync(folder, { recursive: true });
    mkdirSync(path.join(repository, 'blobs'));
    for (const [i, part] of inParts().entries()) {
      writeFileSync(path.join(repository, 'blobs', `${i}${i}`), part);
      symlinkSync(`../../../blobs/${i}${i}`, path.join(folder, `m-0000${i + 1}-of-00002.gguf`));
    }
    expect((await inspectFolder(path.join(folder, 'm-00001-of-00002.gguf'))).name).toBe('m');
    // A link that leaves the repository is refused.
    writeFileSync(path.join(dir, 'outside'), inParts()[1]);
    rmSync(path.join(folder, 'm-00002-of-00002.gguf'));
    symlinkSync(path.join(dir, 'outside'), path.join(folder, 'm-00002-of-00002.gguf'));
    await expect(inspectFolder(path.join(folder, 'm-00001-of-00002.gguf'))).rejects.toThrow('leaves the model folder');
  },
);

test('the parts have the ending of the file', async () => {
  for (const [i, part] of inParts().entries()) writeFileSync(path.join(dir, `N-0000${i + 1}-of-00002.GGUF`), part);
  const { model } = await inspectFolder(path.join(dir, 'N-00001-of-00002.GGUF'));
  expect(model.files).toEqual(['N-00001-of-00002.GGUF', 'N-00002-of-00002.GGUF']);
});

test('a file with random changes is read or refused', async () => {
  const header = quantised.indexOf('rope_freqs.weight') + 2000;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(header), fc.nat(255)), { minLength: 1, maxLength: 4 }),
      async (changes) => {
        const bytes = Buffer.from(quantised);
        for (const [at, byte] of changes) bytes[at] = byte;
        await refusal(bytes);
      },
    ),
    { seed: 1, numRuns: 200 },
  );
});

test('a part that is missing is named, and a file may be called a part of another one', async () => {
  expect(await refusal(good, 'x-00001-of-00002.gguf')).toMatch(/^x-00002-of-00002\.gguf is missing/);
  expect(await refusal(good, 'x-00001-of-00001.gguf')).toBe('');
});

test.skipIf(process.platform === 'win32')('a link to a file is followed', async () => {
  writeFileSync(path.join(dir, 'real.gguf'), good);
  symlinkSync(path.join(dir, 'real.gguf'), path.join(dir, 'link.gguf'));
  expect((await inspectFolder(path.join(dir, 'link.gguf'))).name).toBe('link');
});

test('a file without the ending is recognised by its beginning', async () => {
  writeFileSync(path.join(dir, 'sha256-12'), good);
  expect((await inspectFolder(path.join(dir, 'sha256-12'))).name).toBe('test');
  writeFileSync(path.join(dir, 'notes'), readFileSync('README.md'));
  await expect(inspectFolder(path.join(dir, 'notes'))).rejects.toThrow(/is no model; .* or a GGUF file\.$/);
});
