/** Errors for requests that do not fit: which limit they name, and what they advise. */
import { expect, test } from 'vitest';
import { noLongContexts } from '../../../engine/kv/approx/interfaces.ts';
import { KvCache } from '../../../engine/kv/kvCache.ts';
import { kvBytesPerToken } from '../../../engine/kv/kvRows.ts';
import { KvPool } from '../../../engine/kv/pool.ts';
import { speakBytes } from '../../../engine/protocol/formatBytes.ts';
import { lacking, tooLarge } from '../../../engine/scheduler/capacityErrors.ts';
import { fakeShape } from '../../support/engine/fakeRunner.ts';

/** A cache that holds nothing. */
const EMPTY = { capacity: 0, longContexts: { ...noLongContexts(), capacity: 0 } };

test('an error about a shared limit says how many windows share it now', () => {
  const cache = new KvCache({
    pool: new KvPool(fakeShape(), 0),
    maxBytes: 100 * kvBytesPerToken(fakeShape()),
    softSlots: 100,
    clock: () => 0,
  });
  let numEditorWindows = 1;
  const limit = { bytes: () => 1e6, numEditorWindows: () => numEditorWindows, needs: () => null };
  const said = (): string[] => [tooLarge(101, cache, limit).message, lacking('memory', limit).message];
  const alone = said();
  for (const message of alone) expect(message).toMatch(/ Raise kvasir\.cache\.maxBytes or send less text\.$/);
  numEditorWindows = 3;
  expect(said()).toEqual(
    alone.map((message) => `${message} 3 editor windows share this memory. With fewer windows open, each has more.`),
  );
  numEditorWindows = 1;
  expect(said()).toEqual(alone);
});

test('an error suggests a sufficient setting in bytes, rounded up, only if it is above the present one', () => {
  const limit = {
    bytes: () => 1e6,
    numEditorWindows: () => 1,
    needs: () => ({ numTokens: 2048, whole: 2_829_359, inParts: 1_410_000, spills: true }),
  };
  const said = (change: object): string => tooLarge(537, EMPTY, { ...limit, ...change }).message;
  const lack =
    'The request has 537 tokens, but the KV cache limit of 1.0 MB holds 0. Raise kvasir.cache.maxBytes or send less text';
  expect(said({})).toBe(`${lack}: about 2.9 MB are enough for 2048 tokens, or 1.5 MB to read them in parts.`);
  expect(said({ numEditorWindows: () => 2 })).toContain(
    'about 5.7 MB are enough for 2048 tokens, or 2.9 MB to read them in parts. 2 editor windows',
  );
  expect(said({ needs: () => ({ ...limit.needs(), spills: false }) })).toBe(
    `${lack}: about 2.9 MB are enough for 2048 tokens, or 1.5 MB to read them in parts. ` +
      'To read in parts, kvasir.cache.diskBytes must be above 0.',
  );
  // There are parts that take less only for long texts; and no lower limit is advised than there is.
  expect(said({ needs: () => ({ ...limit.needs(), inParts: 2_829_359 }) })).toBe(
    `${lack}: about 2.9 MB are enough for 2048 tokens.`,
  );
  expect(said({ bytes: () => 2e6 })).toContain('about 2.9 MB are enough for 2048 tokens.');
  expect(said({ bytes: () => 3e6 })).toMatch(/Raise kvasir\.cache\.maxBytes or send less text\.$/);
  expect(lacking('memory', limit).message).toContain(
    'the KV cache limit of 1.0 MB is too small for the next part. Raise kvasir.cache.maxBytes',
  );
});

test("sizes use the number format of the user's language", () => {
  const limit = { bytes: () => 1_234_567, numEditorWindows: () => 1, needs: () => null };
  speakBytes('pt-br');
  try {
    expect(tooLarge(537, EMPTY, limit).message).toContain('the KV cache limit of 1,2 MB holds 0');
  } finally {
    speakBytes('en');
  }
  expect(tooLarge(537, EMPTY, limit).message).toContain('the KV cache limit of 1.2 MB holds 0');
});
