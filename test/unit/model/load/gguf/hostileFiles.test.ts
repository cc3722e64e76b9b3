/** GGUF files that are cut, lie or hold something else are refused in one sentence. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RequestError } from '../../../../../engine/protocol/errors.ts';
import { inspectFolder } from '../../../../../engine/server/inspection.ts';
import { good, hostileFiles, quantised } from '../../../../support/model/hostileGguf.ts';

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
