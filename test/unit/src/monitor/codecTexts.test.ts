/** The texts about codecs: for the configured codec and for the codecs of a file. */
import { expect, test } from 'vitest';
import type { CodecQuality, EngineStats, ModelInfo } from '../../../../engine/protocol/stats.ts';
import { codecNotes } from '../../../../src/monitor/codecTexts.ts';
import { hoverMarkdown } from '../../../../src/monitor/hover.ts';
import { english } from '../../../support/editor/translate.ts';

const quality = (codec: string, klMean: number, compression: number): CodecQuality => ({
  codec,
  klMean,
  klMax: 1,
  top1: 0.95,
  bound: 0.05,
  numTokens: 100,
  bytesPerToken: 1,
  compression,
});
const model = (compressed: CodecQuality[]): ModelInfo =>
  ({ name: 'm', precision: 'int8', kv: 'int8', contextTokens: 2048, threads: 2, compressed }) as unknown as ModelInfo;
const [MILD, HARD] = [
  'int4-kivi: 3.5 times smaller than 16 bits, picks the same next token 95.0% of the time, measured with this model on 100 tokens',
  'turboquant: 5.4 times smaller than 16 bits, picks the same next token 95.0% of the time, measured with this model on 100 tokens',
];
const LEFT_OUT = 'turboquant is not used: with this model its mean KL divergence would be 2.0e-1, more than 5e-2';

test('a file with parts in several codecs has a line for each', () => {
  const both = model([quality('int4-kivi', 0.01, 3.54), quality('turboquant', 0.02, 5.43)]);
  expect(codecNotes(['turboquant'], both, english)).toBe(HARD);
  expect(codecNotes(['int4-kivi', 'turboquant'], both, english)).toBe(`${MILD}\n${HARD}`);
  expect([
    codecNotes(['int8'], both, english),
    codecNotes(['float32'], both, english),
    codecNotes(['int4-kivi'], null, english),
  ]).toEqual(['As computed, without loss.', '', '']);
});

test('the hover has a line for each codec, also for an unused one', () => {
  const stats = (compressed: CodecQuality[]): EngineStats =>
    ({
      model: model(compressed),
      requests: {},
      tokens: { prompt: 0 },
      memory: {},
      files: [],
    }) as unknown as EngineStats;
  const lines = (compressed: CodecQuality[]): string[] =>
    hoverMarkdown(stats(compressed), undefined, english).split('\n');
  expect(lines([quality('int4-kivi', 0.01, 3.54), quality('turboquant', 0.02, 5.43)])).toEqual(
    expect.arrayContaining([MILD, HARD]),
  );
  expect(lines([quality('int4-kivi', 0.01, 3.54), quality('turboquant', 0.2, 5.43)])).toEqual(
    expect.arrayContaining([MILD, LEFT_OUT]),
  );
  // The codec that kvzip uses for conversations is not a setting.
  expect(lines([quality('h2o', 0.01, 6.3)])).toContain(
    'h2o, for long conversations: 6.3 times smaller than 16 bits, picks the same next token 95.0% of the time, measured with this model on 100 tokens',
  );
});
