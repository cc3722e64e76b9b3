/** Measured attention adds up over parts, and no part allocates memory. */
import { afterEach, expect, test, vi } from 'vitest';
import { AttentionMeter } from '../../../../../engine/kv/approx/pruned/attentionMeter.ts';
import type { ModelRunner } from '../../../../../engine/model/batch.ts';

afterEach(() => vi.unstubAllGlobals());

const [HEADS, ROWS] = [3, 50];

/** Rows of its context receive this of each step. */
function giving(value: number): ModelRunner {
  const received = {
    most: new Float32Array(HEADS * ROWS).fill(value),
    sum: new Float32Array(HEADS * ROWS).fill(2 * value),
  };
  return { vocabSize: 1, paidColumns: 0, received, run: async () => received.most };
}

test('partial attention measurements add up, an interrupted one leaves nothing, and none keeps memory', async () => {
  let numBytes = 0;
  class Counted extends Float32Array {
    constructor(length: number) {
      super(length);
      numBytes += this.byteLength;
    }
  }
  vi.stubGlobal('Float32Array', Counted);
  const meter = new AttentionMeter(HEADS, ROWS);
  expect(numBytes).toBe(AttentionMeter.bytes(HEADS, ROWS));
  vi.unstubAllGlobals();
  const [little, much] = [giving(1), giving(100)];
  const slots = new Int32Array(ROWS);
  let numSteps = 0;
  const feed = (runner: ModelRunner, numTokens: number, most = Number.POSITIVE_INFINITY): Promise<boolean> => {
    let left = most;
    return meter.feed(
      runner,
      { tokenIds: Array.from({ length: numTokens }, (_, i) => i), startIndex: ROWS, numRows: ROWS },
      slots,
      (n) => new Int32Array(n),
      () => left-- === 0,
    );
  };
  const counted: ModelRunner = {
    ...little,
    run: (batch) => {
      numSteps++;
      return little.run(batch);
    },
  };
  numBytes = 0;
  vi.stubGlobal('Float32Array', Counted);
  expect(await feed(counted, 5)).toBe(true);
  const measured = (): number[] => [...new Set(meter.sum)];
  expect(measured()).toEqual([2 * numSteps]);
  expect(await feed(much, 600, 2)).toBe(false);
  expect(await feed(counted, 5)).toBe(true);
  expect(numBytes).toBe(0);
  expect(measured()).toEqual([2 * numSteps]);
});
