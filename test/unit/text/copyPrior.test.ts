import fc from 'fast-check';
import { expect, test } from 'vitest';
import { blend, type SamplerParams, sample } from '../../../engine/sequence/sampler.ts';
import { Sequence } from '../../../engine/sequence/sequence.ts';
import { CopyPrior, type CopyWeights } from '../../../engine/text/copy/copyPrior.ts';

const WEIGHTS: CopyWeights = { share: 1, doubt: 1, match: 1, agreement: 1, confidence: 2, others: 0.1 };
const prior = (
  weights: CopyWeights,
  behind: number[],
  current: number[][],
  textOf = (id: number): string => String(id),
  others: number[][] = [],
): CopyPrior => new CopyPrior(weights, { others, current, behind }, textOf);
const GREEDY: SamplerParams = {
  temperature: 0,
  topP: 1,
  topK: 0,
  repetitionPenalty: 1,
  logprobs: true,
  topLogprobs: 0,
  seed: 1,
};

interface Texts {
  before: number[];
  generated: number[];
  behind: number[];
  others: number[][];
}

/** Tokens from here on are words. */
const WORDS_FROM = 3;
const wordOf = (id: number): string => (id >= WORDS_FROM ? 'word' : '(');

/** The rule written down without a thought for speed. */
function votes({ before, generated, behind, others }: Texts, least = 2): Map<number, number> {
  const current = [...before, ...generated];
  const words = (ids: number[]): number[] => [...new Set(ids)].filter((id) => id >= WORDS_FROM);
  const share = (wanted: number[], window: number[]): number =>
    wanted.length ? wanted.filter((id) => window.includes(id)).length / wanted.length : 0;
  const found = new Map<number, number>();
  // The text that goes on counts for its surroundings as it was when the answer began.
  for (const { text, known, weight } of [
    ...others.map((text) => ({ text, known: text, weight: WEIGHTS.others })),
    { text: behind, known: behind, weight: 1 },
    { text: current, known: before, weight: 1 },
  ]) {
    for (let i = 0; i + 1 < text.length; i++) {
      let length = 0;
      while (
        length < 32 &&
        length <= i &&
        length < current.length &&
        text[i - length] === current[current.length - 1 - length]
      )
        length++;
      if (length < least) continue;
      const start = 16 * Math.min(Math.floor(i / 16), Math.max(1, Math.ceil(known.length / 16)) - 1);
      const alike =
        share(words(before.slice(-48)), known.slice(Math.max(0, start - 40), start + 16)) +
        share(words(behind.slice(0, 60)), known.slice(start, start + 68));
      found.set(text[i + 1]!, (found.get(text[i + 1]!) ?? 0) + weight * length ** 3 * Math.exp(4 * alike));
    }
  }
  // Of one token in the file itself, where no two are found.
  return found.size === 0 && least > 1 ? votes({ before, generated, behind, others: [] }, 1) : found;
}

const someTokens = fc.array(fc.nat(5), { maxLength: 60 });

test('property: places vote on the next token, with more weight for longer matches and similar surroundings, and less for other files', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(5), { minLength: 1, maxLength: 120 }),
      someTokens,
      fc.array(fc.nat(8), { maxLength: 120 }),
      fc.array(fc.array(fc.nat(8), { maxLength: 120 }), { maxLength: 2 }),
      (before, generated, behind, others) => {
        const copying = prior(WEIGHTS, behind, [before.slice(0, 20), before.slice(20)], wordOf, others);
        for (const tokenId of generated) copying.push(tokenId, 'word');
        const expected = votes({ before, generated, behind, others });
        const next = copying.next();
        expect(next === null).toBe(expected.size === 0);
        if (!next) return;
        const all = [...expected.values()].reduce((sum, vote) => sum + vote, 0);
        expect(new Map(next.tokenIds.map((id, i) => [id, next.shares[i]!.toFixed(9)]))).toEqual(
          new Map([...expected].map(([id, vote]) => [id, (vote / all).toFixed(9)])),
        );
        expect([...next.shares].sort((a, b) => b - a)).toEqual(next.shares);
      },
    ),
  );
});

test('property: predictions depend on the texts and the answer so far, not on the time of the call', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(5), { minLength: 1, maxLength: 60 }),
      someTokens,
      someTokens,
      (before, generated, behind) => {
        const [asked, resumed] = [0, 1].map(() => prior(WEIGHTS, behind, [before], wordOf));
        for (const tokenId of generated) {
          asked!.next();
          asked!.push(tokenId, 'word');
          resumed!.push(tokenId, 'word');
        }
        const [a, b] = [asked!.next(), resumed!.next()];
        expect(a && { ...a, weight: a.weight(0.5) }).toEqual(b && { ...b, weight: b.weight(0.5) });
      },
    ),
  );
});

test('the weight grows with the match, with agreeing places and with an unsure model; it stays below 1 and is 0 without a share', () => {
  const text = [1, 2, 3, 4, 5, 6, 7, 8];
  const after = (current: number[], others = [text], weights = WEIGHTS): number =>
    prior({ ...weights, others: 1 }, [], [current], undefined, others)
      .next()!
      .weight(0.5);
  expect(
    prior(WEIGHTS, text, [[4]])
      .next()!
      .weight(0.5),
  ).toBeLessThan(
    prior(WEIGHTS, text, [[3, 4]])
      .next()!
      .weight(0.5),
  );
  expect(after([3, 4])).toBeLessThan(after([1, 2, 3, 4]));
  expect(after([3, 4], [text, [3, 4, 9]])).toBeLessThan(after([3, 4], [text, text]));
  const next = prior(WEIGHTS, text, [[3, 4]]).next()!;
  expect(next.weight(0.9)).toBeLessThan(next.weight(0.1));
  expect(after([3, 4], [text], { ...WEIGHTS, match: 100 })).toBeLessThan(0.99);
  expect(after([3, 4], [text], { ...WEIGHTS, share: 0 })).toBe(0);
  expect(prior(WEIGHTS, text, [[9]]).next()).toBeNull();
  expect(prior(WEIGHTS, [], [[]]).next()).toBeNull();
  // The end of one text and the beginning of the next are not neighbours.
  expect(
    prior(WEIGHTS, [3, 4], [[2]], undefined, [
      [1, 2],
      [5, 2],
    ]).next(),
  ).toBeNull();
  // Without a weight, other files are not even read.
  expect(prior({ ...WEIGHTS, others: 0 }, [], [[3]], undefined, [text]).next()).toBeNull();
});

test('blended logits have the mixture as their softmax, and undoing the blend restores them', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: -20, max: 20, noNaN: true }), { minLength: 3, maxLength: 40 }),
      fc.double({ min: 0, max: 0.97, noNaN: true }),
      (values, weight) => {
        const logits = Float32Array.from(values);
        const before = logits.slice();
        const softmax = (row: Float32Array): number[] => {
          const max = Math.max(...row);
          const sum = row.reduce((total, v) => total + Math.exp(v - max), 0);
          return Array.from(row, (v) => Math.exp(v - max) / sum);
        };
        const own = softmax(logits);
        const max = Math.max(...logits);
        const logZ = max + Math.log(logits.reduce((total, v) => total + Math.exp(v - max), 0));
        const told: number[] = [];
        const weigh = (likeliest: number): number => {
          told.push(likeliest);
          return weight;
        };
        const { undo } = blend(logits, logZ, max, { tokenIds: [2, 0], shares: [0.75, 0.25], weight: weigh });
        expect(told).toEqual([expect.closeTo(Math.max(...own), 5)]);
        const mixed = own.map((p, id) => (1 - weight) * p + weight * (id === 2 ? 0.75 : id === 0 ? 0.25 : 0));
        for (const [id, p] of softmax(logits).entries()) expect(p).toBeCloseTo(mixed[id]!, 5);
        undo();
        expect(logits).toEqual(before);
      },
    ),
  );
});

test('sampling can choose a copied token with the log-probability of the mixture; a required opening stays required', () => {
  const logits = Float32Array.from([0, 3, 0, 2]);
  const other = { tokenIds: [2], shares: [1], weight: () => 0.8 };
  const model = Math.exp(0) / (Math.exp(3) + Math.exp(2) + 2);
  const { tokenId, logprob } = sample(logits, GREEDY, [], 0, null, other);
  expect(tokenId).toBe(2);
  expect(logprob).toBeCloseTo(Math.log(0.8 + 0.2 * model), 5);
  expect(sample(logits, GREEDY, [], 0, [0, 3], other).tokenId).toBe(3);
  expect(sample(logits, GREEDY, [], 0, [0, 2], other)).toMatchObject({ tokenId: 2 });
  expect(logits).toEqual(Float32Array.from([0, 3, 0, 2]));
});

test('a line end is copied only after the answer has text', () => {
  const textOf = (id: number): string => (id === 9 ? '\n' : id === 8 ? ' ' : 'word');
  const text = [1, 2, 9, 3, 8, 9];
  const copying = prior(WEIGHTS, text, [[1, 2]], textOf);
  expect(copying.next()).toBeNull();
  copying.push(3, '');
  expect(copying.next()!.tokenIds).toContain(8);
  // What the answer has to begin with is none of it.
  copying.push(8, '');
  expect(copying.next()).toBeNull();
  copying.push(3, 'word');
  copying.push(8, ' ');
  expect(copying.next()!.tokenIds).toContain(9);
  const blank = prior(WEIGHTS, text, [[3]], textOf);
  blank.push(8, ' ');
  expect(blank.next()).toBeNull();
});

test('a sequence passes each token to the copy prior, with the text of the answer only', () => {
  const told: [number, string][] = [];
  let left = 'ab';
  const sequence = new Sequence({
    id: 'x',
    priority: 'chat',
    promptIds: [1],
    eosIds: [0],
    detokenizer: { push: (id) => (id === 7 ? 'a' : 'bcd'), flush: () => '' },
    opening: {
      allowed: null,
      get isSaid() {
        return left === '';
      },
      push: () => {},
      hide: (text) => {
        const hidden = Math.min(left.length, text.length);
        left = left.slice(hidden);
        return text.slice(hidden);
      },
    },
    prior: () => ({ next: () => null, push: (tokenId, answered) => told.push([tokenId, answered]) }),
    onToken: () => {},
    onFinish: () => {},
    onError: () => {},
  });
  // Made when the first token is chosen.
  for (const tokenId of [7, 8, 0]) {
    expect(sequence.copied).toBeNull();
    sequence.append({ tokenId, logprob: null, topLogprobs: [] }, 0);
  }
  expect(told).toEqual([
    [7, ''],
    [8, 'cd'],
    [0, ''],
  ]);
});
