/** Tests the `kv` benchmark on a small model: all figures are there and tell good codecs from bad ones. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { FORMATS } from '../../../engine/kv/approx/codecs/registry.ts';
import { KEPT_SHARES, KVZIP } from '../../../engine/kv/approx/pruned/keptRows.ts';
import { type Exercise, textExercises } from '../eval/exercises.ts';
import { answersOf, measureQuality } from '../eval/quality.ts';
import { KvSubject } from '../eval/subject.ts';
import { type Treatment, TREATMENTS } from '../eval/treatments.ts';
import { kvReport } from './kvSuite.ts';
import { pairedChange } from './pairedInterval.ts';
import { PUBLISHED } from './published.ts';
import { changeTable, qualityCharts, qualityReport, smallerTable } from './qualityReport.ts';
import { measureRows } from './rows.ts';
import { measureSpeed } from './speed.ts';
import { measurePool } from './windowCost.ts';
import { below, seededRandom } from '../../support/engine/workload.ts';

const MODEL = 'test/fixtures/models/qwen2-untied-bf16';
const cacheDir = mkdtempSync(path.join(tmpdir(), 'kvasir-kv-'));
afterAll(() => rmSync(cacheDir, { recursive: true, force: true }));

async function withSubject(work: (subject: KvSubject, text: number[]) => Promise<void>): Promise<void> {
  const subject = await KvSubject.open('biased', MODEL, cacheDir, 1);
  try {
    const random = seededRandom(1);
    await work(
      subject,
      Array.from({ length: 400 + 16 + 1 }, () => below(random, subject.runner.vocabSize)),
    );
  } finally {
    await subject.dispose();
  }
}

test('layer sensitivity is measured only for a codec that uses it', async () => {
  const dir = path.join(cacheDir, 'asked for');
  for (const [name, isMeasured] of [
    ['sketch', false],
    ['nvfp4', false],
    ['kvzip', true],
  ] as const) {
    const { codecs } = TREATMENTS.find((treatment) => treatment.name === name)!;
    const subject = await KvSubject.open('biased', MODEL, dir, 1, codecs);
    expect(existsSync(path.join(subject.model.dir, 'layers-turboquant.json')), name).toBe(isMeasured);
    await subject.dispose();
  }
});

/** Three prompts after a context. An answer is right if it starts with `value`. */
const asked = (contextIds: number[], value: string): Exercise => ({
  kind: 'needle',
  contextIds,
  next: [],
  prompts: [7, 8, 9].map((id) => ({
    tail: { ids: [id, id + 1], maxTokens: 3, ends: (token) => token === 0 },
    group: '64',
    judge: (answer) => ({ exact: answer === value, right: answer.startsWith(value) }),
  })),
});

test('rows and speed: the lossless codec changes nothing, and fewer bits change more', () =>
  withSubject(async (subject, text) => {
    expect(subject.biases.size).toBeGreaterThan(0);
    const rows = await measureRows(subject, [text.slice(0, 80)], 64);
    const of = (name: string) => rows.codecs.find(({ codec }) => codec === name)!;
    expect(of('int8')).toMatchObject({ keys: 0, values: 0, attention: 0 });
    const errors = ['nvfp4', 'turboquant'].map(of);
    for (const key of ['keys', 'values', 'attention'] as const) {
      const [four, three] = errors.map((error) => error[key]);
      expect(four).toBeGreaterThan(0.001);
      expect(three).toBeGreaterThan(four!);
      expect(three).toBeLessThan(0.4);
    }
    const speed = await measureSpeed(subject, 64, 32, 1);
    expect(speed.codecs.map(({ codec }) => codec)).toEqual(FORMATS.map(({ name }) => name));
    for (const { encode, decode, ofRecompute } of speed.codecs)
      for (const { median } of [encode, decode, ofRecompute]) expect(median).toBeGreaterThan(0);
    const report = kvReport({ speed: [speed], rows: [rows] });
    for (const { name } of FORMATS) expect(report.split(`| ${name} |`)).toHaveLength(3);
  }));

test('quality: every treatment is compared with the original rows, and these are restored after it', () =>
  withSubject(async (subject, text) => {
    const exercises = [
      ...textExercises([text], { contextTokens: 400, scoredTokens: 16, numTexts: 1 }),
      asked(text.slice(0, 64), 'right'),
    ];
    // An even or odd first token makes an answer wrong or right, so that there are answers to count.
    const result = await measureQuality(subject, exercises, TREATMENTS, {
      decode: (ids) => (ids[0]! % 2 ? 'right' : 'wrong'),
    });
    const of = (name: string) => result.treatments.find(({ treatment }) => treatment === name)!;
    expect(result).toMatchObject({ numTokens: 16, numContexts: 2, longestContext: 400 });
    expect(of('int8')).toMatchObject({
      klMean: 0,
      klMax: 0,
      top1: 1,
      perplexity: 0,
      accuracy: result.accuracy,
      answers: result.answers,
    });
    for (const { name } of TREATMENTS.filter((treatment) => treatment.name !== 'int8'))
      expect(of(name).klMean).toBeGreaterThan(0);
    expect(of('int4-kivi').klMean).toBeLessThan(of('turboquant').klMean);
    const sizes = ['int8', 'nvfp4', 'turboquant', 'kvzip'].map((name) => of(name).bytesPerToken);
    expect(sizes).toEqual([...sizes].sort((a, b) => b - a));
    // The last 128 tokens stay uncoded.
    expect(of('int4-kivi').bytesPerTokenHere).toBeGreaterThan(of('int4-kivi').bytesPerToken);
    // KEPT_SHARES of the long context is coded and each kept token has its position. The short context stays whole.
    const rowBytes = of('int8').bytesPerToken - 1;
    const keptBytes = of('kvzip').bytesPerToken;
    expect(keptBytes).toBeCloseTo(KEPT_SHARES[KVZIP] * (of('turboquant').bytesPerToken + 4), 6);
    expect(of('kvzip').bytesPerTokenHere).toBeGreaterThan((0.99 * 400 * keptBytes + 64 * rowBytes) / 464);
    expect(of('kvzip').bytesPerTokenHere).toBeLessThan((1.05 * 400 * keptBytes + 64 * rowBytes) / 464);
    // One third is uncoded. Each codec of the ladder has one third.
    const third = (name: string): number => of(name).bytesPerToken / 3;
    expect(of('auto').bytesPerToken).toBeCloseTo(rowBytes / 3 + third('int4-kivi') + third('turboquant'), 6);
    expect(of('auto').klMean).toBeGreaterThan(of('int4-kivi').klMean / 2);
    // By kind of exercise. The short context of the needles stays whole.
    expect(of('kvzip').contexts.map(({ kind, numContexts, numTokens }) => [kind, numContexts, numTokens])).toEqual([
      ['text', 1, 400],
      ['needle', 1, 64],
    ]);
    expect(of('kvzip').contexts[1]!.bytes).toBe(64 * rowBytes);
    expect(smallerTable(result)).toMatch(/\| kvzip \| [23]\.\d\dx \| [23]\.\d\dx \| 1\.0\dx \| 2\.\d\dx \|/);
    // H2O also keeps the recent tokens.
    expect(of('h2o').bytesPerTokenHere).toBeGreaterThan(of('kvzip').bytesPerTokenHere);
    for (const { compression, bytesPerToken } of result.treatments)
      expect(compression * bytesPerToken).toBeCloseTo(subject.float16Bytes, 6);
    const counted = answersOf(of('nvfp4').answers, 'needle')!;
    expect(counted.n).toBe(3);
    expect(counted.exact).toBe(counted.right);
    const before = answersOf(result.answers, 'needle')!;
    for (const { answers, changes } of result.treatments) {
      expect(changes.map(({ kind }) => kind)).toEqual(['needle']);
      expect(before.right - changes[0]!.lost + changes[0]!.gained).toBe(answersOf(answers, 'needle')!.right);
    }
    expect(of('int8').changes).toEqual([{ kind: 'needle', lost: 0, gained: 0 }]);
    expect(changeTable(result)).toContain('| int8 | +0.0 (');
    expect(answersOf(result.answers, 'question')).toBeNull();
    // A second run gives the same result, so nothing of the first one stays in the pool.
    expect(
      await measureQuality(subject, exercises, TREATMENTS, { decode: (ids) => (ids[0]! % 2 ? 'right' : 'wrong') }),
    ).toEqual(result);

    const window = await measurePool('biased', MODEL, cacheDir, 1, [text.slice(0, 48)]);
    for (const { klSum, numTokens } of [window.read, window.written]) {
      expect(numTokens).toBe(48);
      expect(klSum / numTokens).toBeGreaterThan(0);
      expect(klSum / numTokens).toBeLessThan(0.01);
    }
    // Integer queries and probabilities change the attention.
    expect(window.read.klSum).not.toBe(window.written.klSum);
    const bench = { starter: result, shape: result, fixtures: [result] };
    const report = qualityReport(bench);
    for (const { treatment } of result.treatments)
      expect(
        report
          .split('\n')
          .find((line) => line.startsWith(`| ${treatment} |`) && line.includes(PUBLISHED[treatment]!.reported)),
      ).toBeDefined();
    expect(Object.values(qualityCharts(bench)).join('')).toContain('turboquant');
    const rows = {
      model: 'starter',
      numTexts: 1,
      coded: 64,
      compared: 8,
      codecs: [{ codec: 'nvfp4' as const, keys: 0.1, values: 0.2, attention: 0.3 }],
    };
    expect(kvReport({ speed: [], rows: [rows] })).toContain('| nvfp4 | 10.00% | 20.00% | 30.00% |');
  }));

test('paired intervals match an example of the paper and have the expected properties', () => {
  const rounded = (of: Parameters<typeof pairedChange>[0]) =>
    Object.values(pairedChange(of)).map((share) => Number(share.toFixed(4)));
  // 36 right both times, 12 gained, 2 lost.
  expect(rounded({ lost: 2, gained: 12, n: 50, rightBefore: 38 })).toEqual([0.2, 0.0569, 0.3404]);
  const { change, least, most } = pairedChange({ lost: 9, gained: 6, n: 331, rightBefore: 111 });
  expect(change).toBeCloseTo(-3 / 331, 9);
  expect([least < change, change < most]).toEqual([true, true]);
  // No change is weaker evidence with fewer questions.
  const same = [20, 200].map((n) => pairedChange({ lost: 0, gained: 0, n, rightBefore: n / 2 }));
  expect(same.map((of) => of.change)).toEqual([0, 0]);
  expect(same[1]!.most).toBeLessThan(same[0]!.most);
  expect(same[1]!.least).toBeCloseTo(-same[1]!.most, 9);
  // Asking the same questions twice gives a narrower interval than two independent sets.
  const independent = 1.96 * Math.sqrt((2 * 0.335 * 0.665) / 331);
  expect(most - least).toBeLessThan(independent);
});

test('a treatment may leave fewer slots than there were tokens', () =>
  withSubject(async (subject, text) => {
    const context = await subject.compute(text.slice(0, 96));
    const tails = [{ ids: [5], maxTokens: 4, ends: () => false }];
    const whole = await subject.answer(context, [context.slots], tails);
    expect(await subject.answer(context, [context.slots], tails)).toEqual(whole);
    const half = context.slots.filter((slot) => slot % 2 === 0);
    const [rows] = [await subject.follow(context, half, [5, 6])];
    const [exact] = [await subject.follow(context, context.slots, [5, 6])];
    expect(rows.map((row) => row.length)).toEqual(exact.map((row) => row.length));
    expect(rows[0]).not.toEqual(exact[0]);
    // Runs the same half of the rows through the evaluation.
    const dropping: Treatment = {
      name: 'half',
      codecs: [],
      bytesPerToken: ({ float16Bytes }) => float16Bytes / 4,
      apply: async ({ float16Bytes }, { slots }) => ({
        slotsFor: async () => slots.filter((slot) => slot % 2 === 0),
        bytes: (slots.length * float16Bytes) / 4,
      }),
    };
    const {
      treatments: [dropped],
    } = await measureQuality(subject, textExercises([text], { contextTokens: 400, scoredTokens: 16, numTexts: 1 }), [
      dropping,
    ]);
    expect(dropped).toMatchObject({ treatment: 'half', compression: 4, bytesPerTokenHere: subject.float16Bytes / 4 });
    expect(dropped!.klMean).toBeGreaterThan(0);
  }));
