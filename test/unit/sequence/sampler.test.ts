import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RequestError } from '../../../engine/protocol/errors.ts';
import { type SamplerParams, sample, uniform } from '../../../engine/sequence/sampler.ts';

const GREEDY: SamplerParams = {
  temperature: 0,
  topP: 1,
  topK: 0,
  repetitionPenalty: 1,
  logprobs: true,
  topLogprobs: 0,
  seed: 1,
};

/** The rules written down without a thought for speed. Returns the tokens that may be chosen with their probabilities. */
function reference(logits: Float32Array, params: SamplerParams, previous: number[]): Map<number, number> {
  const scores = [...logits].map((logit, id) => {
    if (!previous.includes(id)) return logit;
    return logit > 0 ? logit / params.repetitionPenalty : logit * params.repetitionPenalty;
  });
  const max = Math.max(...scores);
  let ranked = scores.map((score, id) => ({ id, weight: Math.exp((score - max) / params.temperature) }));
  ranked.sort((a, b) => b.weight - a.weight || a.id - b.id);
  if (params.topK > 0) ranked = ranked.slice(0, params.topK);
  const total = ranked.reduce((sum, { weight }) => sum + weight, 0);
  let mass = 0;
  ranked = ranked.filter(({ weight }) => {
    const keep = params.topP === 1 || mass < params.topP * total;
    mass += weight;
    return keep;
  });
  const left = ranked.reduce((sum, { weight }) => sum + weight, 0);
  return new Map(ranked.map(({ id, weight }) => [id, weight / left]));
}

test('greedy sampling takes the best token with its log-probability, the lower id of two equal ones', () => {
  const logits = Float32Array.from([1, 3, -2, 3]);
  const { tokenId, logprob, topLogprobs } = sample(logits, { ...GREEDY, topLogprobs: 3 }, [], 0);
  const logZ = Math.log(Math.exp(1) + 2 * Math.exp(3) + Math.exp(-2));
  expect(tokenId).toBe(1);
  expect(logprob).toBeCloseTo(3 - logZ, 6);
  expect(topLogprobs.map((top) => top.tokenId)).toEqual([1, 3, 0]);
  expect(topLogprobs[2]!.logprob).toBeCloseTo(1 - logZ, 6);
});

test('a temperature near zero takes the best token, like zero', () => {
  const logits = Float32Array.of(1, 3, 2, -1);
  for (const temperature of [0, Number.MIN_VALUE, 1e-310, 1e-12, 1e-7])
    expect(sample(logits, { ...GREEDY, temperature, topP: 0.9 }, [], 0).tokenId).toBe(1);
});

test('log-probabilities are those of the model, whatever the temperature and the penalty', () => {
  const logits = Float32Array.from([1, 3, -2, 2]);
  const plain = sample(logits, { ...GREEDY, topLogprobs: 4 }, [], 0);
  const other = sample(logits, { ...GREEDY, topLogprobs: 4, temperature: 3, repetitionPenalty: 5 }, [1], 0);
  expect(other.topLogprobs).toEqual(plain.topLogprobs);
  expect(other.logprob).toBe(plain.topLogprobs.find((top) => top.tokenId === other.tokenId)!.logprob);
});

test('the penalty divides positive and multiplies negative logits of tokens already there', () => {
  expect(sample(Float32Array.from([4, 3, 1]), { ...GREEDY, repetitionPenalty: 2 }, [0, 0], 0).tokenId).toBe(1);
  expect(sample(Float32Array.from([-1, -1.5, -9]), { ...GREEDY, repetitionPenalty: 2 }, [0], 0).tokenId).toBe(1);
});

test('extreme logits: -Infinity is never taken, NaN and Infinity are a bug of the model', () => {
  const logits = Float32Array.from([Number.NEGATIVE_INFINITY, 1000, Number.NEGATIVE_INFINITY, 999]);
  for (let i = 0; i < 50; i++) expect([1, 3]).toContain(sample(logits, { ...GREEDY, temperature: 5 }, [], i).tokenId);
  expect(sample(logits, GREEDY, [], 0).logprob).toBeCloseTo(-Math.log(1 + Math.exp(-1)), 6);
  expect(() => sample(Float32Array.from([Number.NaN, 1]), GREEDY, [], 0)).toThrow('not finite');
  expect(() => sample(Float32Array.from([1, Number.POSITIVE_INFINITY]), GREEDY, [], 0)).toThrow('not finite');
});

test('a row without a valid token fails only its own sequence and does not affect the next row', () => {
  const spoilt = { ...GREEDY, repetitionPenalty: 1e-40 };
  expect(() => sample(Float32Array.of(1, 5, 2), spoilt, [1], 0, [1])).toThrow(RequestError);
  expect(sample(Float32Array.of(1, 5, 2), GREEDY, [], 0, [0, 2]).tokenId).toBe(2);
});

test('rounding that swaps two equally likely tokens does not change the drawn token', () => {
  const one = Float32Array.from([1, 2, 2 + 2e-7, 0.5, 1.9]);
  const other = Float32Array.from([1, 2 + 2e-7, 2, 0.5, 1.9]);
  for (const cut of [{ topP: 0.95 }, { topK: 4 }]) {
    const drawn = (logits: Float32Array): number[] =>
      Array.from({ length: 200 }, (_, i) => sample(logits, { ...GREEDY, temperature: 1, ...cut }, [], i).tokenId);
    expect(new Set(drawn(one)).size).toBeGreaterThan(3);
    expect(drawn(other)).toEqual(drawn(one));
  }
});

test('a log-probability is computed where it or alternatives are asked for', () => {
  const logits = Float32Array.from([1, 3]);
  expect(sample(logits, { ...GREEDY, logprobs: false }, [], 0)).toEqual({ tokenId: 1, logprob: null, topLogprobs: [] });
  expect(sample(logits, { ...GREEDY, logprobs: false, topLogprobs: 1 }, [], 0).logprob).toBeCloseTo(
    -Math.log(1 + Math.exp(-2)),
    6,
  );
});

test('property: over thousands of tokens, greedy, alternatives and log-probabilities are those of a plain loop', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 3000 }),
      fc.integer(),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 0, max: 12 }),
      (length, seed, levels, topLogprobs) => {
        // Few levels make many ties.
        const logits = Float32Array.from(
          { length },
          (_, i) => Math.floor(uniform(seed, i) * 4 ** levels) / 4 ** (levels - 2) - 20,
        );
        const ranked = Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b);
        const max = logits[ranked[0]!]!;
        const logZ = max + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - max), 0));
        const { tokenId, logprob, topLogprobs: top } = sample(logits, { ...GREEDY, topLogprobs }, [], 0);
        expect(tokenId).toBe(ranked[0]);
        expect(logprob).toBeCloseTo(max - logZ, 5);
        expect(top.map((one) => one.tokenId)).toEqual(ranked.slice(0, topLogprobs));
        if (length > 9) expect(() => sample(logits.with(length - 2, Number.NaN), GREEDY, [], 0)).toThrow('not finite');
      },
    ),
    { seed: 21, numRuns: 200 },
  );
});

test('the random number depends on seed and index only, and is uniform', () => {
  expect(uniform(5, 9)).toBe(uniform(5, 9));
  const seen = new Set<number>();
  let sum = 0;
  const bins = new Array<number>(16).fill(0);
  for (let seed = 0; seed < 40; seed++) {
    for (let index = 0; index < 500; index++) {
      const u = uniform(seed, index);
      expect(u >= 0 && u < 1).toBe(true);
      seen.add(u);
      sum += u;
      bins[Math.floor(u * 16)]!++;
    }
  }
  expect(seen.size).toBe(20_000);
  expect(sum / 20_000).toBeCloseTo(0.5, 2);
  for (const count of bins) expect(Math.abs(count - 1250)).toBeLessThan(150);
  expect(uniform(2 ** 40, 1)).not.toBe(uniform(0, 1));
});

test('property: only tokens that the cuts leave are taken, each as often as its probability says', () => {
  const setting = fc.record({
    logits: fc.array(
      fc.integer({ min: -600, max: 600 }).map((n) => n / 100),
      { minLength: 1, maxLength: 40 },
    ),
    temperature: fc.double({ min: 0.3, max: 3, noNaN: true }),
    topK: fc.integer({ min: 0, max: 12 }),
    topP: fc.oneof(fc.constant(1), fc.double({ min: 0.05, max: 0.999, noNaN: true })),
    repetitionPenalty: fc.constantFrom(1, 1.3, 0.8),
    seed: fc.integer(),
    previous: fc.array(fc.nat(3), { maxLength: 4 }),
    // A large vocabulary with the likely tokens far apart.
    apart: fc.constantFrom(1, 1, 61),
  });
  fc.assert(
    fc.property(setting, ({ logits, previous, apart, ...rest }) => {
      const params = { ...GREEDY, ...rest };
      const values = new Float32Array(logits.length * apart).fill(-200);
      for (const [i, logit] of logits.entries()) values[i * apart] = logit;
      const known = previous.filter((id) => id < logits.length).map((id) => id * apart);
      const before = values.slice();
      const expected = reference(values, params, known);
      const draws = 300;
      const counts = new Map<number, number>();
      for (let i = 0; i < draws; i++) {
        const { tokenId } = sample(values, params, known, i);
        counts.set(tokenId, (counts.get(tokenId) ?? 0) + 1);
      }
      expect(values).toEqual(before);
      for (const [id, count] of counts) {
        const p = expected.get(id) ?? 0;
        expect(p).toBeGreaterThan(0);
        expect(Math.abs(count / draws - p)).toBeLessThan(0.2);
      }
    }),
    { seed: 11, numRuns: 300 },
  );
});

test('cuts are exact on round numbers', () => {
  const logits = Float32Array.from([0.5, 0.25, 0.125, 0.0625, 0.0625].map(Math.log));
  const taken = (params: Partial<SamplerParams>): number[] => {
    const ids = new Set<number>();
    for (let i = 0; i < 400; i++) ids.add(sample(logits, { ...GREEDY, temperature: 1, ...params }, [], i).tokenId);
    return [...ids].sort();
  };
  expect(taken({})).toEqual([0, 1, 2, 3, 4]);
  expect(taken({ topK: 3 })).toEqual([0, 1, 2]);
  expect(taken({ topK: 4 })).toEqual([0, 1, 2, 3]);
  expect(taken({ topP: 0.74 })).toEqual([0, 1]);
  expect(taken({ topP: 0.76 })).toEqual([0, 1, 2]);
  expect(taken({ topK: 3, topP: 0.8 })).toEqual([0, 1]);
});

test('only allowed tokens are chosen, greedy, sampled or with a penalty; log-probabilities are among the allowed', () => {
  const logits = Float32Array.from({ length: 1200 }, (_, i) => Math.sin(i * 7.3));
  const allowed = [3, 700, 1100];
  const best = allowed.reduce((a, b) => (logits[a]! >= logits[b]! ? a : b));
  const { tokenId, logprob } = sample(logits, { ...GREEDY, logprobs: true }, [], 0, allowed);
  expect(tokenId).toBe(best);
  const sum = allowed.reduce((total, id) => total + Math.exp(logits[id]!), 0);
  expect(logprob).toBeCloseTo(logits[best]! - Math.log(sum), 4);
  expect(
    sample(logits, { ...GREEDY, topLogprobs: 5 }, [], 0, allowed)
      .topLogprobs.map((top) => top.tokenId)
      .sort((a, b) => a - b),
  ).toEqual(allowed);
  const drawn = new Set(
    Array.from({ length: 200 }, (_, i) => sample(logits, { ...GREEDY, temperature: 2 }, [], i, allowed).tokenId),
  );
  expect([...drawn].sort((a, b) => a - b)).toEqual(allowed);
  const before = logits.slice();
  expect(allowed).toContain(sample(logits, { ...GREEDY, repetitionPenalty: 50 }, [best], 0, allowed).tokenId);
  expect(logits).toEqual(before);
  expect(sample(logits, GREEDY, [], 0, []).tokenId).toBe(sample(logits, GREEDY, [], 0).tokenId);
});
