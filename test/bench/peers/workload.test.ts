import { expect, test } from 'vitest';
import {
  MEASURES,
  perToken,
  playScene,
  TINY_SIZES as SIZES,
  SEQUENCES,
  togetherRate,
  type SceneName,
} from './workload.ts';
import { agreement, medians, peersReport, ratio } from './peersReport.ts';
import type { Sample } from './peersBench.ts';

/**
 * An engine with a perfect prompt cache. A prompt token costs 1 ms if its prefix is new. A further token costs 5 ms.
 */
function scripted() {
  let known: number[] = [];
  const asked: { prompts: number[][]; computed: number[] }[] = [];
  const ask = async ({ prompts, tokens }: { prompts: number[][]; tokens: number }) => {
    const computed = prompts.map((prompt) => {
      const differing = prompt.findIndex((id, i) => id !== known[i]);
      known = prompt;
      return prompt.length - differing;
    });
    asked.push({ prompts, computed });
    return prompts.map((_, p) => ({
      tokenIds: Array.from({ length: tokens }, (_, i) => i),
      atMs: Array.from({ length: tokens }, (_, i) => computed[p]! + 5 * i),
    }));
  };
  return { ask, asked };
}

test('a scene derives rates from the tokens that the prompt cache leaves, and times between tokens', async () => {
  const { ask, asked } = scripted();
  const { figures, firstTokens } = await playScene('medium', ask, SIZES, 1000, 7);
  expect(figures).toEqual({ prompt2k: 1000, decode2k: 5, chunk2k: 1000 });
  expect(asked.map(({ computed }) => computed)).toEqual([[SIZES.medium], [SIZES.chunk]]);
  expect(firstTokens).toEqual([0, 0]);
});

test('the second question shares the file, and the edited file shares all before the edited line', async () => {
  const { ask, asked } = scripted();
  const { figures } = await playScene('large', ask, SIZES, 100_000, 7);
  const file = SIZES.large - SIZES.question;
  expect(asked.map(({ computed }) => computed[0])).toEqual([
    SIZES.large,
    SIZES.question,
    SIZES.chunk,
    SIZES.large - file / 2 + SIZES.editedLine - SIZES.line,
  ]);
  expect(figures).toMatchObject({
    firstQuestion: SIZES.large,
    secondQuestion: SIZES.question,
    prompt8k: 1000,
    chunk7k: 1000,
  });
});

test('prompts are the same for the same seed and share nothing with those of another seed', async () => {
  const prompts = async (scene: SceneName, seed: number) => {
    const { ask, asked } = scripted();
    await playScene(scene, ask, SIZES, 100_000, seed);
    return asked.flatMap((request) => request.prompts);
  };
  expect(await prompts('together', 1)).toEqual(await prompts('together', 1));
  // Each prompt is asked for twice: it is computed, then continued.
  const [one, other] = [new Set(await prompts('together', 1)), new Set(await prompts('together', 2))].map((set) => [
    ...set,
  ]) as [number[][], number[][]];
  expect(one).toHaveLength(SEQUENCES);
  expect(new Set([...one, ...other].map(([first]) => first)).size).toBe(2 * SEQUENCES);
  for (const id of one.flat()) expect(id).toBeGreaterThanOrEqual(10_000);
});

test('sequences with different start and end count only while all of them decode', () => {
  const late = { tokenIds: [0, 0, 0, 0], atMs: [100, 120, 140, 160] };
  const early = { tokenIds: [0, 0, 0, 0], atMs: [10, 90, 110, 130] };
  // In the 30 ms after 100 there are one token of the first and two of the second.
  expect(togetherRate([late, early])).toBeCloseTo(100);
  expect(() => togetherRate([late, { tokenIds: [0, 0], atMs: [10, 90] }])).toThrow('at the same time');
  expect(perToken([50, 90, 100, 111, 121])).toBe(10);
});

const sample = (
  participant: string,
  round: number,
  decode512: number,
  prompt512: number,
  firstTokens = [1, 2],
): Sample => ({ participant, scene: 'small', round, figures: { decode512, prompt512 }, firstTokens });

test('the table has medians and says how many times better Kvasir is, for measures of both directions', () => {
  const samples = [
    sample('kvasir', 0, 10, 900),
    sample('kvasir', 1, 12, 800),
    sample('kvasir', 2, 11, 850),
    sample('other', 0, 22, 425),
    sample('other', 1, 40, 400, [1, 3]),
    sample('other', 2, 20, 430),
  ];
  expect(medians(samples).decode512!.kvasir!.median).toBe(11);
  expect(ratio('decode512', 11, 22)).toBe(2);
  expect(ratio('prompt512', 850, 425)).toBe(2);
  expect(agreement(samples, 'kvasir', 'other')).toBeCloseTo(5 / 6);
  const participant = (label: string) => ({ label, name: label, modelBytes: 5e8, settings: {} });
  const report = peersReport({
    shape: 'tiny',
    threads: 2,
    sizes: SIZES,
    participants: { other: participant('Other'), kvasir: participant('Kvasir') },
    samples,
  });
  const rows = report.split('\n').filter((line) => line.startsWith('|'));
  expect(rows).toEqual([
    '|  | Kvasir | Other |',
    '| --- | ---: | ---: |',
    `| ${MEASURES.decode512.label} (ms) | 11.0 (10.0–12.0) | 22.0 (20.0–40.0) · **2.00x** |`,
    `| ${MEASURES.prompt512.label} (tok/s) | 850 (800–900) | 425 (400–430) · **2.00x** |`,
  ]);
});
