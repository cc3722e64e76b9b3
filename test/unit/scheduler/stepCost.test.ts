/** Step costs, learnt on a quiet and on a noisy machine; when sequences share a step; targets; token budgets. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Part, sharesStep, StepCost, TYPICAL_PREFILL } from '../../../engine/scheduler/stepCost.ts';
import { besideMs, stepTarget } from '../../../engine/scheduler/tokenBudget.ts';
import { fixedBudget, learntBudget } from '../../../engine/scheduler/tokenBudget.ts';
import { StepPlanner } from '../../../engine/scheduler/stepPlanner.ts';
import { below, seededRandom } from '../../support/engine/workload.ts';

interface Machine {
  a: number;
  b: number;
  c: number;
}

const time = ({ a, b, c }: Machine, tokens: number, columns: number): number => a + tokens * (b + c * columns);

/** Steps as an editor makes them: mostly decodes, some chunks, over windows of several sizes. `noise` is applied to each time. */
function learn(
  machine: Machine,
  numSteps: number,
  seed: number,
  noise: (ms: number, random: () => number) => number = (ms) => ms,
): StepCost {
  const cost = new StepCost();
  const random = seededRandom(seed);
  for (let i = 0; i < numSteps; i++) {
    const tokens = random() < 0.6 ? 1 + below(random, 4) : 8 + below(random, 250);
    const columns = [256, 1024, 2048, 8192][below(random, 4)]! + tokens;
    cost.observe(tokens, columns, noise(time(machine, tokens, columns), random));
  }
  return cost;
}

test('the cost model finds the coefficients of an idle machine, fast or slow', () => {
  const machine = fc.record({
    a: fc.double({ min: 2, max: 200, noNaN: true }),
    b: fc.double({ min: 0.05, max: 10, noNaN: true }),
    c: fc.double({ min: 1e-4, max: 2e-2, noNaN: true }),
  });
  fc.assert(
    fc.property(machine, fc.integer(), (m, seed) => {
      const cost = learn(m, 200, seed);
      for (const [tokens, columns] of [
        [1, 500],
        [4, 8000],
        [64, 2000],
        [200, 8000],
      ] as const) {
        const off = cost.predict(tokens, columns) / time(m, tokens, columns);
        expect(off).toBeGreaterThan(0.9);
        expect(off).toBeLessThan(1.1);
      }
    }),
    { seed: 1, numRuns: 100 },
  );
});

test('the cost model finds a cost of columns alone, as in the prefill lane', () => {
  const m = { a: 5, b: 0.2, c: 0.0002, d: 0.008 };
  const ms = (tokens: number, columns: number): number => m.a + tokens * (m.b + m.c * columns) + m.d * columns;
  const cost = new StepCost(TYPICAL_PREFILL);
  const random = seededRandom(9);
  for (let i = 0; i < 200; i++) {
    const tokens = 16 + below(random, 240);
    const columns = [0, 512, 2048, 8192][below(random, 4)]! + tokens;
    cost.observe(tokens, columns, ms(tokens, columns));
  }
  for (const [tokens, columns] of [
    [16, 600],
    [16, 8000],
    [200, 2000],
  ] as const)
    expect(cost.predict(tokens, columns) / ms(tokens, columns)).toBeCloseTo(1, 1);
  const tokens = cost.tokensWithin(400, 2048);
  expect(cost.predict(tokens, 2048 + tokens)).toBeLessThanOrEqual(400);
  expect(cost.predict(tokens + 1, 2049 + tokens)).toBeGreaterThan(380);
});

test('predictions stay right with a fifth of the steps 20 times too slow and 15% noise in the others', () => {
  const machine = { a: 14, b: 0.8, c: 0.0012 };
  for (let seed = 0; seed < 10; seed++) {
    const cost = learn(machine, 400, seed, (ms, random) => ms * (random() < 0.2 ? 20 : 0.9 + 0.3 * random()));
    for (const [tokens, columns] of [
      [1, 500],
      [64, 2000],
      [200, 8000],
    ] as const) {
      const off = cost.predict(tokens, columns) / time(machine, tokens, columns);
      expect(off).toBeGreaterThan(0.8);
      expect(off).toBeLessThan(1.35);
    }
  }
});

test('no coefficient is negative, whatever is measured', () => {
  const step = fc.tuple(
    fc.integer({ min: 1, max: 512 }),
    fc.integer({ min: 1, max: 32768 }),
    fc.double({ min: 1e-3, max: 1e5, noNaN: true }),
  );
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
      const cost = new StepCost();
      for (const one of steps) cost.observe(...one);
      const { a, b, c, d } = cost.coefficients;
      expect(Math.min(a, b, c, d)).toBeGreaterThanOrEqual(0);
      expect(a + b + c + d).toBeGreaterThan(0);
      expect(cost.predict(1, 100)).toBeGreaterThan(0);
    }),
    { seed: 2 },
  );
});

test('a machine that becomes twice as slow is recognised within twelve steps', () => {
  const machine = { a: 14, b: 0.8, c: 0.001 };
  const cost = learn(machine, 300, 1);
  for (let i = 0; i < 12; i++) cost.observe(i % 3 === 0 ? 60 : 1, 2048, 2 * time(machine, i % 3 === 0 ? 60 : 1, 2048));
  expect(cost.predict(1, 2048) / time(machine, 1, 2048)).toBeGreaterThan(1.7);
  expect(cost.predict(60, 2048) / time(machine, 60, 2048)).toBeGreaterThan(1.5);
});

test('a thousand decodes do not change what a chunk costs', () => {
  const machine = { a: 20, b: 1.5, c: 0.003 };
  const cost = learn(machine, 100, 3);
  for (let i = 0; i < 1000; i++) cost.observe(1, 2048, time(machine, 1, 2048));
  expect(cost.predict(128, 2048) / time(machine, 128, 2048)).toBeCloseTo(1, 1);
});

test('tokensWithin is the inverse of predict over the pool and the step itself', () => {
  const machine = { a: 14, b: 0.8, c: 0.001 };
  const cost = learn(machine, 300, 4);
  for (const columns of [0, 512, 8192]) {
    for (const ms of [20, 50, 150, 300]) {
      const tokens = cost.tokensWithin(ms, columns);
      if (tokens > 0) expect(cost.predict(tokens, columns + tokens)).toBeLessThanOrEqual(ms);
      expect(cost.predict(tokens + 1, columns + tokens + 1)).toBeGreaterThan(ms);
    }
  }
  expect(cost.tokensWithin(5, 0)).toBe(0);
});

test('step size grows gradually', () => {
  const machine = { a: 14, b: 2, c: 0.02 };
  const cost = new StepCost();
  const sizes = [];
  for (let i = 0, tokens = 32; i < 6; i++) {
    cost.observe(tokens, 512 + tokens, time(machine, tokens, 512 + tokens));
    tokens = cost.tokensWithin(8000, 512);
    sizes.push(tokens);
  }
  expect(sizes[0]).toBeLessThanOrEqual(64);
  expect(sizes[1]).toBeLessThanOrEqual(128);
  expect(time(machine, sizes[5]!, 512 + sizes[5]!) / 8000).toBeCloseTo(1, 1);
});

test('impossible times are ignored', () => {
  const cost = new StepCost();
  for (const ms of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) cost.observe(1, 100, ms);
  cost.observe(0, 100, 5);
  expect(cost.known).toBe(false);
});

test('the step time target depends on completions, then on typing, reading and idle work, then on throughput', () => {
  const calm = {
    completion: false,
    backlogMs: 0,
    reading: false,
    idleOnly: false,
    msSinceTyping: Number.POSITIVE_INFINITY,
    weightsMs: 8,
  };
  expect(stepTarget(calm).ms).toBe(800);
  expect(stepTarget({ ...calm, msSinceTyping: 4999 }).ms).toBe(150);
  expect(stepTarget({ ...calm, msSinceTyping: 5000 }).ms).toBe(300);
  expect(stepTarget({ ...calm, msSinceTyping: 60_000 }).ms).toBe(800);
  expect(stepTarget({ ...calm, reading: true }).ms).toBe(150);
  expect(stepTarget({ ...calm, idleOnly: true }).ms).toBe(150);
  expect(stepTarget({ ...calm, completion: true, msSinceTyping: 0 })).toEqual({ ms: 50, lateMs: 50, leastTokens: 4 });
  // Of parts that others have to wait for: long ones where nobody types.
  expect(
    [calm, { ...calm, reading: true }, { ...calm, reading: true, msSinceTyping: 4999 }].map(
      (attention) => stepTarget(attention).lateMs,
    ),
  ).toEqual([300, 300, 150]);
  expect(besideMs(stepTarget({ ...calm, completion: true }), 20)).toBe(28);
  expect(besideMs(stepTarget({ ...calm, completion: true }), 45)).toBe(50);
  // Much to compute for completions: longer steps, up to a bound. Others' work does not count.
  expect(stepTarget({ ...calm, completion: true, backlogMs: 180 }).ms).toBe(50);
  expect(stepTarget({ ...calm, completion: true, backlogMs: 400 }).ms).toBe(100);
  expect(stepTarget({ ...calm, completion: true, backlogMs: 60_000 }).ms).toBe(150);
  expect(stepTarget({ ...calm, backlogMs: 60_000 }).ms).toBe(800);
  // A large model: a step of 50 ms would be little but reading its weights.
  expect(stepTarget({ ...calm, completion: true, weightsMs: 40 }).ms).toBe(120);
  expect(stepTarget({ ...calm, weightsMs: 40 }).ms).toBe(800);
});

test('token budgets stay within the time target, above the minimum and below what memory allows', () => {
  const urgent = { ms: 50, lateMs: 50, leastTokens: 4 };
  const cost = learn({ a: 14, b: 0.8, c: 0.001 }, 300, 5);
  const budget = learntBudget(cost, new StepCost(), urgent);
  const tokens = budget.tokens(1024, 1);
  const beside = (ownTokens: number): number => budget.beside(1024, ownTokens);
  expect(cost.predict(tokens, 1024 + tokens)).toBeLessThanOrEqual(50);
  expect(tokens).toBeGreaterThan(10);
  // Beside the decode of a completion others get what makes its step 40% longer.
  expect(cost.predict(beside(1), 1024 + beside(1))).toBeLessThan(1.4 * cost.predict(1, 1025) + 1);
  expect(beside(tokens)).toBe(tokens);
  // Where another token would make it longer than that, there is none.
  expect(budget.beside(20_000, 1)).toBeLessThan(2);
  expect(budget.tokens(1_000_000, 8)).toBe(12);
  expect(learntBudget(cost, new StepCost(), { ms: 1e9, lateMs: 1e9, leastTokens: 16 }).tokens(1024, 0)).toBe(512);
  expect(learntBudget(cost, new StepCost(), { ms: 1e9, lateMs: 1e9, leastTokens: 16 }, 16).tokens(16384, 0)).toBe(64);
  expect(learntBudget(cost, new StepCost(), { ms: 1e9, lateMs: 1e9, leastTokens: 16 }, 32).tokens(16384, 0)).toBe(32);
  expect(learntBudget(new StepCost(), new StepCost(), urgent).tokens(1024, 0)).toBe(32);
  expect(fixedBudget(32).tokens(1024, 4)).toBe(32);
  expect(fixedBudget(32).tokens(1024, 30)).toBe(38);
  expect(budget.columnMs(2000)).toBeCloseTo(2000 * cost.coefficients.c, 9);
  expect([learntBudget(new StepCost(), new StepCost(), urgent).columnMs(2000), fixedBudget(32).columnMs(2000)]).toEqual(
    [0, 0],
  );
  // A decode over a small pool beside another's large one: not in one step; over the same one always.
  const decode = (columns: number) => ({ tokens: 1, columns });
  expect(budget.shares(decode(8192), decode(8192), 16384)).toBe(false);
  expect(budget.shares(decode(8192), decode(8192), 8192)).toBe(true);
  expect(learntBudget(new StepCost(), new StepCost(), urgent).shares(decode(8192), decode(8192), 16384)).toBe(true);
});

test('an overestimated lane recovers although it only gets small parts of steps', () => {
  const costs = { pool: learn({ a: 14, b: 0.8, c: 0.001 }, 300, 5), prefill: new StepCost(TYPICAL_PREFILL) };
  const planner = new StepPlanner(() => 0, costs, undefined);
  const ms = (count: number): number => 14 + 0.5 * count;
  for (let i = 0; i < 20; i++) planner.learn(0, 256, { startIndex: 0, count: 64 }, 5 * ms(64));
  expect(costs.prefill.predict(24, 24)).toBeGreaterThan(3 * ms(24));
  // Beside ten answers over a long pool, which take most of the step.
  const beside = 10 * (0.8 + 0.001 * 4106);
  for (let i = 0; i < 20; i++) planner.learn(10, 4096, { startIndex: 0, count: 24 }, ms(24) + beside);
  expect(costs.prefill.predict(24, 24)).toBeLessThan(1.3 * ms(24));
});

test('one step with tokens in two unknown lanes informs the estimate of both', () => {
  const costs = { pool: new StepCost(), prefill: new StepCost(TYPICAL_PREFILL) };
  const planner = new StepPlanner(() => 0, costs, undefined);
  const typical = 2 * (costs.prefill.predict(64, 64) + costs.pool.predict(4, 1028) - costs.pool.coefficients.a);
  planner.learn(4, 1024, { startIndex: 0, count: 64 }, typical);
  expect(costs.pool.predict(4, 1028) + costs.prefill.predict(64, 64) - costs.pool.coefficients.a).toBeCloseTo(
    typical,
    0,
  );
  expect([costs.pool.known, costs.prefill.known]).toEqual([true, true]);
});

// --- sharing a step -----------------------------------------------------------------

const typical = { a: 14, b: 0.8, c: 0.001, d: 0 };

/** How many decodes with pools of `columns` of their own come to share a step. */
function together(columns: number, coefficients = typical): number {
  let n = 1;
  const part = (tokens: number): Part => ({ tokens, columns: tokens * columns });
  while (n < 100 && sharesStep(coefficients, part(n), part(1), (n + 1) * columns)) n++;
  return n;
}

test('long separate contexts run in separate steps, short ones share steps', () => {
  expect(together(8000)).toBe(1);
  expect(together(2000)).toBe(4);
  expect(together(300)).toBeGreaterThan(16);
  // Where weights are dear and columns cheap, all run together.
  expect(together(8000, { a: 200, b: 1, c: 1e-6, d: 0 })).toBe(100);
});

test('the cost of columns alone is no reason to separate, but a reason to share common prefixes', () => {
  const one = { tokens: 8, columns: 4000 };
  expect(sharesStep(typical, one, one, 6000)).toBe(false);
  expect(sharesStep({ ...typical, d: 0.01 }, one, one, 6000)).toBe(true);
});

test('sequences with one shared prefix always share steps', () => {
  expect(sharesStep(typical, { tokens: 60, columns: 30_000 }, { tokens: 400, columns: 30_000 }, 30_000)).toBe(true);
});

test('a short prompt and an answer with a long context do not share steps', () => {
  const answer = { tokens: 1, columns: 4000 };
  expect(sharesStep(typical, answer, { tokens: 100, columns: 256 }, 4256)).toBe(false);
  expect(sharesStep(typical, answer, { tokens: 2, columns: 256 }, 4256)).toBe(true);
  // Few tokens beside many that have much the same pool.
  expect(sharesStep(typical, { tokens: 100, columns: 4000 }, { tokens: 1, columns: 4000 }, 4128)).toBe(true);
});
