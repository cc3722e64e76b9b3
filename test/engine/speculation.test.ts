/** Speculation over the fake model: drafts change only the number of steps of an answer. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { SamplingParams } from '../../engine/protocol/tasks.ts';
import { resolveSampling } from '../../engine/sequence/sampler.ts';
import type { SequenceOptions } from '../../engine/sequence/sequence.ts';
import { chain, fakeLogits, VOCAB_SIZE } from '../support/engine/fakeRunner.ts';
import { ask, drain, harness, numberDetokenizer, tokens } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';
import {
  below,
  driveWorkload,
  makeWorkload,
  type Random,
  seededRandom,
  type WorkItem,
} from '../support/engine/workload.ts';

const LIMITS = { maxContext: 4096, capacity: 4096 };

/** A text for drafts: the model's future answer, with mistakes. */
function foretold(promptIds: readonly number[], sampling: SamplingParams, mistakes: number, random: Random): number[] {
  const { tokenIds } = runAlone(promptIds, { ...sampling, maxTokens: sampling.maxTokens! + 4 }, LIMITS);
  const text = [...promptIds.slice(-2), ...tokenIds];
  return text.map((tokenId) => (random() < mistakes ? below(random, VOCAB_SIZE) : tokenId));
}

type Drafting = WorkItem & Pick<SequenceOptions, 'draftSources'>;

function withSources(items: WorkItem[], mistakes: number, seed: number): Drafting[] {
  const random = seededRandom(seed);
  return items.map((item) => {
    const source = item.sampling.maxTokens! > 0 ? foretold(item.promptIds, item.sampling, mistakes, random) : [];
    return { ...item, draftSources: () => [source] };
  });
}

test('a predictable answer gets many tokens per step; an unpredictable one takes as many steps as without drafts', async () => {
  const prompt = tokens(40);
  const sampling = { maxTokens: 100 };
  const known = foretold(prompt, sampling, 0, seededRandom(1));
  const stepsOf = async (speculation: boolean, source: number[] | null): Promise<number> => {
    const { engine } = harness({ slots: 2048, tokenBudget: 64, policies: { speculation } });
    const answer = ask(engine, prompt, { ...sampling, draftSources: source && (() => [source]) });
    const steps = await drain(engine);
    expect(answer.tokenIds).toEqual(runAlone(prompt, sampling, LIMITS).tokenIds);
    expect(answer.ended).toBe('length');
    const { generated, drafted, accepted } = engine.stats().tokens;
    expect(generated).toBe(100);
    // Every step gives one token plus the accepted ones.
    expect(steps + accepted).toBe(100);
    expect(drafted).toBeGreaterThanOrEqual(accepted);
    return steps;
  };
  expect(await stepsOf(false, known)).toBe(100);
  expect(await stepsOf(true, null)).toBe(100);
  expect(await stepsOf(true, known)).toBeLessThan(15);
  expect(await stepsOf(true, tokens(500, 3))).toBeGreaterThan(90);
});

test('drafting stops soon for a text in which every pair of tokens has random successors', async () => {
  // With a repetition penalty far below 1, the model repeats tokens of the prompt in random order. Each guess is right
  // one time in twelve.
  const sampling = { maxTokens: 400, repetitionPenalty: 0.01 };
  const prompt = Array.from({ length: 12 }, (_, i) => i);
  const { engine } = harness({ slots: 2048 });
  const answer = ask(engine, prompt, sampling);
  await drain(engine);
  expect(answer.tokenIds).toEqual(runAlone(prompt, sampling, LIMITS).tokenIds);
  const { drafted } = engine.stats().tokens;
  expect(drafted).toBeGreaterThan(5);
  expect(drafted).toBeLessThan(60);
});

test('property: greedy and sampled, with right and wrong drafts, under any budget: the tokens of the oracle', async () => {
  let accepted = 0;
  let drafted = 0;
  let preemptions = 0;
  const setting = fc.record({
    seed: fc.integer(),
    slots: fc.integer({ min: 40, max: 500 }),
    tokenBudget: fc.integer({ min: 1, max: 64 }),
    arrivalsPerStep: fc.constantFrom(0.1, 0.5, 3),
    aborts: fc.constantFrom(0, 0.3),
    mistakes: fc.constantFrom(0, 0.1, 0.5),
  });
  await fc.assert(
    fc.asyncProperty(setting, async ({ slots, tokenBudget, mistakes, ...workload }) => {
      const limits = { maxContext: 200, capacity: slots, eosIds: [7] };
      const items = withSources(
        makeWorkload({ ...workload, numRequests: 30, numTokens: VOCAB_SIZE, maxTokens: 40, fileTokens: 30 }),
        mistakes,
        workload.seed,
      );
      const { engine, clock } = harness({ slots, tokenBudget, maxContext: limits.maxContext });
      const outcomes = await driveWorkload(engine, items, {
        detokenizer: numberDetokenizer,
        eosIds: limits.eosIds,
        afterStep: () => {
          clock.now += 20;
          engine.checkIntegrity();
          const { total, free, held } = engine.stats().poolSlots;
          expect(free + held).toBe(total);
        },
      });
      for (const { id, promptIds, sampling } of items) {
        const { tokenIds, logprobs, finishReason, error } = outcomes.get(id)!;
        const expected = runAlone(promptIds, sampling, limits);
        if (finishReason === 'abort') expect(tokenIds, id).toEqual(expected.tokenIds.slice(0, tokenIds.length));
        else
          expect({ tokenIds, logprobs, finishReason, error }, id).toEqual({
            finishReason: undefined,
            error: undefined,
            ...expected,
          });
      }
      const stats = engine.stats();
      accepted += stats.tokens.accepted;
      drafted += stats.tokens.drafted;
      preemptions += stats.events.preemptions;
    }),
    { seed: 8, numRuns: 60 },
  );
  expect(accepted).toBeGreaterThan(2000);
  expect(drafted - accepted).toBeGreaterThan(1000);
  expect(preemptions).toBeGreaterThan(100);
});

test('draft tokens after an end token, a stop string or a complete text are dropped, and their rows are freed', async () => {
  const prompt = tokens(20, 5);
  const sampling = { maxTokens: 60 };
  const { tokenIds } = runAlone(prompt, sampling, LIMITS);
  const source = [...prompt.slice(-2), ...tokenIds];
  // A long copied run lets many tokens be accepted at once.
  const at = tokenIds.findIndex((id, i) => i > 30 && !tokenIds.slice(0, i).includes(id));
  const upTo = tokenIds.slice(0, at + 1);

  const run = async (options: Parameters<typeof ask>[2], whenTold?: (n: number, stop: () => void) => void) => {
    const { engine } = harness({ slots: 2048 });
    const answer = ask(engine, prompt, { id: 'x', ...sampling, draftSources: () => [source], ...options });
    if (whenTold) {
      const { tokenIds: told } = answer;
      const push = told.push.bind(told);
      told.push = (...ids) => {
        const length = push(...ids);
        whenTold(length, () => engine.stop('x'));
        return length;
      };
    }
    await drain(engine);
    expect(engine.stats().tokens.accepted).toBeGreaterThan(20);
    engine.blocks.evict();
    expect(engine.stats().poolSlots.held).toBe(0);
    return { ...answer, tokenIds: [...answer.tokenIds] };
  };
  expect(await run({ eosIds: [tokenIds[at]!] })).toMatchObject({ tokenIds: upTo, ended: 'stop' });
  expect(await run({ stop: [`<${tokenIds[at]!}>`] })).toMatchObject({
    tokenIds: upTo,
    ended: 'stop',
    text: upTo
      .slice(0, -1)
      .map((id) => `<${id}>`)
      .join(''),
  });
  expect(await run({}, (n, stop) => n === at + 1 && stop())).toMatchObject({ tokenIds: upTo, ended: 'stop' });
  expect(await run({ maxTokens: at + 1 })).toMatchObject({ tokenIds: upTo, ended: 'length' });
});

test('drafts use free slots only: they cause no eviction and no preemption', async () => {
  const prompt = tokens(60, 9);
  const sampling = { maxTokens: 60 };
  const events = async (speculation: boolean) => {
    const { engine } = harness({ slots: 130, policies: { speculation } });
    ask(engine, tokens(8, 2), { maxTokens: 1 });
    await drain(engine);
    const answer = ask(engine, prompt, {
      ...sampling,
      draftSources: () => [foretold(prompt, sampling, 0, seededRandom(1))],
    });
    await drain(engine);
    expect(answer.tokenIds).toEqual(runAlone(prompt, sampling, LIMITS).tokenIds);
    const { evictions, demotions, preemptions } = engine.stats().events;
    return { evictions, demotions, preemptions };
  };
  expect(await events(true)).toEqual(await events(false));
});

test('the sampled distribution is unchanged: chi-square of the token after a drafted one, over 6,000 seeds', async () => {
  const prompt = tokens(12, 3);
  const params = resolveSampling({ temperature: 0.2, seed: 0 });
  let hash = 0;
  for (const [position, tokenId] of prompt.entries()) hash = chain(hash, tokenId, position);
  const distribution = (after: number): number[] => {
    const weights = [...fakeLogits(after)].map((logit) => Math.exp(logit / params.temperature));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    return weights.map((weight) => weight / total);
  };
  const best = (after: number): number =>
    fakeLogits(after).reduce((top, logit, id, all) => (logit > all[top]! ? id : top), 0);
  const first = best(hash);
  const afterFirst = chain(hash, first, 12);
  const second = best(afterFirst);
  const afterSecond = chain(afterFirst, second, 13);
  const source = [prompt.at(-1)!, first, second, best(afterSecond), 1, 2, 3];

  const { engine } = harness({ slots: 4096 });
  const counts = [new Array<number>(VOCAB_SIZE).fill(0), new Array<number>(VOCAB_SIZE).fill(0)];
  for (let seed = 0; seed < 6000; seed++) {
    const { tokenIds } = ask(engine, prompt, { maxTokens: 4, temperature: 0.2, seed, draftSources: () => [source] });
    while (engine.hasWork()) await engine.step();
    if (tokenIds[0] !== first) continue;
    counts[0]![tokenIds[1]!]!++;
    if (tokenIds[1] === second) counts[1]![tokenIds[2]!]!++;
  }
  const { drafted, accepted } = engine.stats().tokens;
  expect(accepted).toBeGreaterThan(500);
  expect(drafted - accepted).toBeGreaterThan(500);
  for (const [i, after] of [afterFirst, afterSecond].entries()) {
    const total = counts[i]!.reduce((sum, count) => sum + count, 0);
    expect(total).toBeGreaterThan(300);
    // Rare tokens are counted together, so that each class has a large enough expectation.
    let chi2 = 0;
    let classes = 0;
    let [rareSeen, rareExpected] = [0, 0];
    for (const [id, p] of distribution(after).entries()) {
      const seen = counts[i]![id]!;
      if (p * total < 5) {
        rareSeen += seen;
        rareExpected += p * total;
        continue;
      }
      chi2 += (seen - p * total) ** 2 / (p * total);
      classes++;
    }
    chi2 += (rareSeen - rareExpected) ** 2 / Math.max(rareExpected, 1);
    // The mean is `classes`, the deviation sqrt(2 * classes). Four deviations above the mean have a probability below
    // one in a thousand.
    expect(chi2).toBeLessThan(classes + 4 * Math.sqrt(2 * classes));
  }
});
