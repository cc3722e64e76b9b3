/**
 * Candidates and cursors of one file, requested together. They fork from their common prefix, which is computed once.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../engine/cli/cliClient.ts';
import { candidateSampling } from '../../engine/protocol/tasks.ts';
import { temporaryFolder } from '../support/model/fixtures.ts';

const folder = temporaryFolder();
const client = new Client();
beforeAll(() =>
  client.load({ modelDir: 'model', cacheDir: folder.dir, precision: 'int8', maxBytes: 50e6, threads: 1 }),
);
afterAll(async () => {
  await client.close();
  folder.remove();
});

const SOURCE = Array.from(
  { length: 40 },
  (_, i) =>
    `export function field${i}(record: Record<string, number>): number {\n  return record.field${i} ?? ${i};\n}\n`,
).join('\n');
const CURSORS = [24, 30, 36].map((i) => SOURCE.indexOf(`field${i} ??`));

test('three candidates at each of three cursors compute the file once and the text at each cursor once', async () => {
  // Without idle prefill, the requests compute everything themselves.
  client.send({ type: 'configure', idleWork: false });
  client.send({ type: 'documentChanged', docId: 'd', version: 1, path: 'src/fields.ts', text: SOURCE });
  const ask = (offset: number, candidate: number) =>
    client.generate(
      { kind: 'complete', docId: 'd', offset },
      { sampling: candidateSampling(candidate, { maxTokens: 12, seed: 3 }) },
    );
  const together = await Promise.all(CURSORS.flatMap((offset) => [0, 1, 2].map((candidate) => ask(offset, candidate))));
  const { promptComputed } = (await client.stats()).tokens;
  const usages = CURSORS.map((_, i) => together[3 * i]!.usage);
  const block = Math.max(...usages.map(({ blockTokens }) => blockTokens));
  expect(block).toBeGreaterThan(400);
  const own = usages.reduce((sum, { promptTokens, blockTokens }) => sum + promptTokens - blockTokens, 0);
  // One more token for each further candidate: the prompt's last token, for its logits.
  expect(promptComputed).toBeLessThanOrEqual(block + own + together.length);
  for (const [i, offset] of CURSORS.entries()) {
    for (const candidate of [0, 1, 2]) {
      client.send({ type: 'evict' });
      const alone = await ask(offset, candidate);
      expect(alone.usage.cachedTokens).toBe(0);
      expect(together[3 * i + candidate]!.tokenIds).toEqual(alone.tokenIds);
    }
  }
});
