/** An engine over the fake runner, with a clock that tests set. */
import { reservedBytes } from '../../../engine/kv/approx/approximations.ts';
import { kvBytesPerToken, type KvShape } from '../../../engine/kv/kvRows.ts';
import { KvPool } from '../../../engine/kv/pool.ts';
import { Engine } from '../../../engine/core/engine.ts';
import type { EngineOptions } from '../../../engine/core/engineOptions.ts';
import type { Priority, SamplingParams } from '../../../engine/protocol/tasks.ts';
import { type Detokenizer, Sequence, type SequenceOptions } from '../../../engine/sequence/sequence.ts';
import { policyOptions, type PolicySwitches } from './policies.ts';
import { FakeRunner, fakeShape, VOCAB_SIZE } from './fakeRunner.ts';
import { below, seededRandom } from './workload.ts';

/** Detokenizes token n as the text "<n>", each token alone. */
export function numberDetokenizer(): Detokenizer {
  return { push: (tokenId) => `<${tokenId}>`, flush: () => '' };
}

export interface Harness {
  engine: Engine;
  runner: FakeRunner;
  pool: KvPool;
  clock: { now: number };
}

/** @param options `slots` is the memory budget in pool slots. The reserve for the codecs' kernels is added to it. */
export function harness(
  options: Partial<Omit<EngineOptions, 'maxBytes' | 'policy'>> & {
    slots: number;
    shape?: KvShape;
    policies?: PolicySwitches;
  },
): Harness {
  const { slots, shape = fakeShape(), policies = {}, ...given } = options;
  const { policy, tokenBudget } = policyOptions(policies);
  const rest = { ...given, policy, tokenBudget: 'tokenBudget' in given ? (given.tokenBudget ?? tokenBudget) : 32 };
  const pool = new KvPool(shape, 0);
  const runner = new FakeRunner(pool);
  const clock = { now: 0 };
  const engine = new Engine({
    runner,
    pool,
    maxContext: 4096,
    clock: () => clock.now,
    ...rest,
    maxBytes: slots * kvBytesPerToken(shape) + reservedBytes(rest, shape),
  });
  return { engine, runner, pool, clock };
}

/** Blocks of files, each with its own path. */
export function filesOf(blocks: readonly (readonly number[])[]): { path: string; tokenIds: readonly number[] }[] {
  return blocks.map((tokenIds, i) => ({ path: `${i}.ts`, tokenIds }));
}

export interface Watched {
  sequence: Sequence;
  tokenIds: number[];
  text: string;
  /** Finish reason or error code, once ended. */
  ended: string | null;
  /** Number of reported ends; must become 1. */
  numEnds: number;
  message: string;
}

let numAsked = 0;

/** Adds a request and watches it. */
export function ask(
  engine: Engine,
  promptIds: readonly number[],
  options: {
    id?: string;
    clientId?: string;
    priority?: Priority;
    prefillTokens?: number;
    detokenizer?: Detokenizer;
    eosIds?: number[];
    draftSources?: SequenceOptions['draftSources'];
  } & SamplingParams = {},
): Watched {
  const {
    id = `q${numAsked++}`,
    clientId = id,
    priority = 'chat',
    detokenizer = numberDetokenizer(),
    eosIds = [],
    prefillTokens = 0,
    draftSources,
    ...sampling
  } = options;
  const watched: Watched = {
    sequence: undefined as never,
    tokenIds: [],
    text: '',
    ended: null,
    numEnds: 0,
    message: '',
  };
  watched.sequence = new Sequence({
    id,
    clientId,
    priority,
    promptIds,
    prefill: [[0, prefillTokens]],
    sampling,
    eosIds,
    detokenizer,
    ...(draftSources ? { draftSources } : {}),
    onToken: ({ tokenId, text }) => {
      watched.tokenIds.push(tokenId);
      watched.text += text;
    },
    onFinish: (reason, rest) => {
      watched.ended = reason;
      watched.text += rest;
      watched.numEnds++;
    },
    onError: (error) => {
      watched.ended = error.code;
      watched.message = error.message;
      watched.numEnds++;
    },
  });
  engine.add(watched.sequence);
  return watched;
}

/** Steps until nothing is left, checking integrity after each one. Returns the number of steps. */
export async function drain(engine: Engine): Promise<number> {
  let steps = 0;
  for (; engine.hasWork(); steps++) {
    await engine.step();
    engine.checkIntegrity();
    if (steps > 100_000) throw new Error('The engine does not come to an end.');
  }
  return steps;
}

/** n seeded token ids of the fake vocabulary. The first is the seed, so that different seeds share no prefix. */
export function tokens(n: number, seed = 0): number[] {
  const random = seededRandom(seed);
  return Array.from({ length: n }, (_, i) => (i === 0 ? seed % VOCAB_SIZE : below(random, VOCAB_SIZE)));
}
