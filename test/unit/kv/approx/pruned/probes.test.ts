/** The parts that measure a file: alone and in a chat turn, at positions that the model has. */
import { expect, test } from 'vitest';
import { partSlots, probes } from '../../../../../engine/kv/approx/pruned/attentionMeter.ts';
import { ModelText } from '../../../../../engine/text/format/modelText.ts';

const TURN = { before: [1001, 1002], after: [1003] };
const IDS = Array.from({ length: 100 }, (_, i) => i);

test('each probed part appears once alone and once in a chat turn that starts with it', () => {
  const parts = probes(IDS, 40, 90, TURN, 2000);
  expect(parts.map(({ tokenIds }) => tokenIds)).toEqual([
    IDS.slice(40, 72),
    [1001, 1002, ...IDS.slice(40, 48), 1003, ...IDS.slice(40, 72)],
    IDS.slice(72),
    [1001, 1002, ...IDS.slice(72, 80), 1003, ...IDS.slice(72)],
  ]);
  for (const { startIndex, numRows, tokenIds } of parts) {
    expect([startIndex, numRows]).toEqual([100, 90]);
    expect(tokenIds.length).toBeLessThanOrEqual(partSlots(TURN));
  }
});

test('with a context of maximum length, probes are placed before its end, never past the last position', () => {
  for (const maxContext of [100, 110, 150]) {
    for (const { startIndex, tokenIds } of probes(IDS, 0, 100, TURN, maxContext)) {
      expect(startIndex + tokenIds.length).toBeLessThanOrEqual(maxContext);
      if (maxContext === 150) expect(startIndex).toBe(100);
    }
  }
});

test('the probed turn of the built-in model is what its template writes around a message', async () => {
  const { turn, tokenizer } = await ModelText.load('model');
  expect([turn.before, turn.after].map((ids) => tokenizer.decode(ids))).toEqual([
    '<|im_start|>user\n',
    '<|im_end|>\n<|im_start|>assistant\n',
  ]);
});
