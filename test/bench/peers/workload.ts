/**
 * Defines the scenes that all participants play: a few prompts with seeded random token ids, and figures from the times
 * of their tokens. Prompts of different rounds share nothing, so a cache helps only where a scene repeats its own text.
 * Pure.
 */
import { seededRandom } from '../../support/engine/workload.ts';
import { median } from '../spread.ts';
import type { Generated, GenerateRequest } from './protocol.ts';

export interface Measure {
  label: string;
  unit: 'ms' | 'tok/s';
  better: 'less' | 'more';
}

const ms = (label: string): Measure => ({ label, unit: 'ms', better: 'less' });
const rate = (label: string): Measure => ({ label, unit: 'tok/s', better: 'more' });

/** In the order of the table. */
export const MEASURES = {
  decode512: ms('decode at 0.5k, per token'),
  decode2k: ms('decode at 2k, per token'),
  decode8k: ms('decode at 8k, per token'),
  prompt512: rate('prefill, whole prompt of 0.5k'),
  prompt2k: rate('prefill, whole prompt of 2k'),
  prompt8k: rate('prefill, whole prompt of 8k'),
  chunk2k: rate('prefill, 512 tokens behind 2k'),
  chunk7k: rate('prefill, 512 tokens behind 7.7k'),
  together: rate('four sequences decoding at 0.5k, total'),
  firstQuestion: ms('first token: first question on a file of 8k'),
  secondQuestion: ms('first token: second question on it'),
  afterEdit: ms('first token: question after a line in its middle was edited'),
} as const satisfies Record<string, Measure>;

export type MeasureName = keyof typeof MEASURES;
export type Figures = Partial<Record<MeasureName, number>>;

/** Lengths in tokens. */
export interface Sizes {
  small: number;
  medium: number;
  /** File and question. */
  large: number;
  question: number;
  chunk: number;
  /** Tokens of a line before and after its edit. */
  line: number;
  editedLine: number;
  decode: number;
  together: number;
}

export const SIZES: Sizes = {
  small: 512,
  medium: 2048,
  large: 8192,
  question: 64,
  chunk: 512,
  line: 10,
  editedLine: 12,
  decode: 32,
  together: 64,
};
/** Sizes for tests of the benchmark. */
export const TINY_SIZES: Sizes = {
  small: 16,
  medium: 48,
  large: 160,
  question: 8,
  chunk: 16,
  line: 4,
  editedLine: 5,
  decode: 8,
  together: 16,
};

export const SEQUENCES = 4;

/** Longest sequence of all scenes. `sharedTokens` is the longest one of the scene whose prompts run together. */
export function contextTokens({ large, decode, editedLine }: Sizes): number {
  return Math.ceil((large + editedLine + decode) / 256) * 256 + 256;
}

export function sharedTokens({ small, together }: Sizes): number {
  return Math.ceil((small + together) / 256) * 256 + 256;
}

export type Ask = (request: GenerateRequest) => Promise<Generated[]>;

export interface Outcome {
  figures: Figures;
  /** First generated tokens in order. The same computation should choose the same ones. */
  firstTokens: number[];
}

export type SceneName = 'small' | 'medium' | 'large' | 'together';

/** @param seed of the prompts. The same seed gives every participant the same ids. */
export async function playScene(
  name: SceneName,
  ask: Ask,
  sizes: Sizes,
  vocabSize: number,
  seed: number,
): Promise<Outcome> {
  const next = seededRandom(seed);
  // Ids at both ends of a vocabulary may be control tokens.
  const ids = (count: number): number[] =>
    Array.from({ length: count }, () => Math.floor((0.1 + 0.8 * next()) * vocabSize));
  const firstTokens: number[] = [];
  const one = async (prompt: number[], tokens: number): Promise<Generated> => {
    const [generated] = await ask({ prompts: [prompt], tokens });
    firstTokens.push(generated!.tokenIds[0]!);
    return generated!;
  };
  const figures = await {
    small: async (): Promise<Figures> => {
      const { atMs } = await one(ids(sizes.small), sizes.decode);
      return { prompt512: perSecond(sizes.small, atMs[0]!), decode512: perToken(atMs) };
    },
    medium: async (): Promise<Figures> => {
      const prompt = ids(sizes.medium);
      const { atMs } = await one(prompt, sizes.decode);
      const more = await one([...prompt, ...ids(sizes.chunk)], 1);
      return {
        prompt2k: perSecond(sizes.medium, atMs[0]!),
        decode2k: perToken(atMs),
        chunk2k: perSecond(sizes.chunk, more.atMs[0]!),
      };
    },
    large: async (): Promise<Figures> => {
      const file = ids(sizes.large - sizes.question);
      const first = await one([...file, ...ids(sizes.question)], sizes.decode);
      const second = await one([...file, ...ids(sizes.question)], 1);
      const more = await one([...file.slice(0, sizes.large - sizes.chunk), ...ids(sizes.chunk)], 1);
      const middle = file.length >> 1;
      const edited = [...file.slice(0, middle), ...ids(sizes.editedLine), ...file.slice(middle + sizes.line)];
      const after = await one([...edited, ...ids(sizes.question)], 1);
      return {
        prompt8k: perSecond(sizes.large, first.atMs[0]!),
        decode8k: perToken(first.atMs),
        chunk7k: perSecond(sizes.chunk, more.atMs[0]!),
        firstQuestion: first.atMs[0]!,
        secondQuestion: second.atMs[0]!,
        afterEdit: after.atMs[0]!,
      };
    },
    together: async (): Promise<Figures> => {
      const prompts = Array.from({ length: SEQUENCES }, () => ids(sizes.small));
      // Computes the prompts first, so that all sequences decode from the start, however an engine schedules arriving
      // prompts.
      for (const { tokenIds } of await ask({ prompts, tokens: 1 })) firstTokens.push(tokenIds[0]!);
      return { together: togetherRate(await ask({ prompts, tokens: sizes.together })) };
    },
  }[name]();
  return { figures, firstTokens };
}

const perSecond = (tokens: number, elapsedMs: number): number => (1000 * tokens) / elapsedMs;

/**
 * Median time between tokens. Leaves out the step from the first to the second token, which may include prompt work.
 */
export function perToken(atMs: readonly number[]): number {
  return median(atMs.slice(2).map((at, i) => at - atMs[i + 1]!));
}

/**
 * Tokens per second of all sequences while all of them decode: from the latest first token to the earliest last token.
 * @throws Error if they did not decode at the same time.
 */
export function togetherRate(generated: readonly Generated[]): number {
  const from = Math.max(...generated.map(({ atMs }) => atMs[0]!));
  const to = Math.min(...generated.map(({ atMs }) => atMs.at(-1)!));
  if (!(to > from)) throw new Error('the sequences did not decode at the same time');
  const count = generated.reduce((sum, { atMs }) => sum + atMs.filter((at) => at > from && at <= to).length, 0);
  return perSecond(count, to - from);
}
