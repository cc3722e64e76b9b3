/**
 * Makes seeded random workloads and runs an Engine with them, for any runner. A workload has prompts with common file
 * prefixes, files that are edited in the middle, all classes, aborts at random steps and a changing budget.
 */
import type { Engine } from '../../../engine/core/engine.ts';
import type { TokenRange } from '../../../engine/kv/laneIds.ts';
import type { FinishReason, Priority, SamplingParams } from '../../../engine/protocol/tasks.ts';
import { type Detokenizer, type Prior, Sequence } from '../../../engine/sequence/sequence.ts';

/** Returns numbers in [0, 1). The generator is mulberry32. */
export type Random = () => number;

export function seededRandom(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const below = (random: Random, n: number): number => Math.floor(random() * n);
const pick = <T>(random: Random, items: readonly T[]): T => items[below(random, items.length)]!;

export interface WorkItem {
  id: string;
  /** Number of the step before which the request is added. */
  arriveStep: number;
  priority: Priority;
  promptIds: number[];
  /** Token ranges for the prefill lane, if there is one. Most are tokens of the file. */
  prefill: readonly TokenRange[];
  sampling: SamplingParams;
  prior?: () => Prior;
  /** Number of steps from arrival to abort, unless the request ends earlier. Default: never. */
  abortAfter?: number;
  /** Whether to abort while the step runs instead of before it. */
  abortDuringStep?: boolean;
}

/** A range at the start, and a range after a gap. */
function parted(leading: number, numTokens: number): TokenRange[] {
  return [
    [0, leading],
    [leading + 5, Math.max(leading + 5, numTokens - (leading % 3))],
  ];
}

export interface WorkloadOptions {
  seed: number;
  numRequests: number;
  /** Token ids come from [firstToken, firstToken + numTokens). */
  firstToken?: number;
  numTokens: number;
  numFiles?: number;
  /** Mean length of a file in tokens. */
  fileTokens?: number;
  /** Longest tail after the file. */
  tailTokens?: number;
  /** Longest answer. */
  maxTokens?: number;
  /** Mean number of requests that arrive per step. */
  arrivalsPerStep?: number;
  /** Share of requests that are aborted. */
  aborts?: number;
  /** Share of requests that sample instead of taking the best token. */
  sampled?: number;
  /** Share of requests whose prompt is much longer than the others, so that they reach the limits. */
  tooLong?: number;
}

export function makeWorkload(options: WorkloadOptions): WorkItem[] {
  const {
    seed,
    numRequests,
    firstToken = 0,
    numTokens,
    numFiles = 4,
    fileTokens = 60,
    tailTokens = 16,
    maxTokens = 12,
  } = options;
  const { arrivalsPerStep = 0.5, aborts = 0.15, sampled = 0.5, tooLong = 0 } = options;
  const random = seededRandom(seed);
  const tokens = (n: number): number[] => Array.from({ length: n }, () => firstToken + below(random, numTokens));
  const header = tokens(3);
  const files = Array.from({ length: numFiles }, () => tokens(1 + below(random, 2 * fileTokens)));
  const items: WorkItem[] = [];
  let step = 0;
  for (let i = 0; i < numRequests; i++) {
    while (random() > arrivalsPerStep / (1 + arrivalsPerStep)) step++;
    const f = below(random, numFiles);
    if (random() < 0.2) {
      // An edit keeps everything before the first changed token.
      const at = below(random, files[f]!.length + 1);
      files[f] = [...files[f]!.slice(0, at), ...tokens(below(random, 4)), ...files[f]!.slice(at + below(random, 4))];
    }
    const file = files[f]!;
    const shown = random() < 0.3 ? file.slice(0, below(random, file.length + 1)) : file;
    const promptIds = [
      ...header,
      ...shown,
      ...tokens(random() < tooLong ? 20 * fileTokens : below(random, tailTokens + 1)),
    ];
    const priority = pick<Priority>(random, ['completion', 'completion', 'chat', 'chat', 'summary', 'idle']);
    const sampling: SamplingParams = {
      maxTokens: priority === 'idle' ? 0 : below(random, maxTokens + 1),
      seed: below(random, 2 ** 31),
      logprobs: i % 2 === 0,
    };
    if (random() < sampled)
      Object.assign(
        sampling,
        pick(random, [
          { temperature: 1 },
          { temperature: 0.8, topK: 5 },
          { temperature: 1.2, topP: 0.7, repetitionPenalty: 1.3 },
          { temperature: 2, topP: 0.95 },
        ]),
      );
    const item: WorkItem = {
      id: `r${i}`,
      arriveStep: step,
      priority,
      promptIds,
      prefill:
        i % 5 === 0 ? parted((i * 7) % (promptIds.length + 1), promptIds.length) : [[0, header.length + shown.length]],
      sampling,
    };
    if (random() < aborts) Object.assign(item, { abortAfter: below(random, 12), abortDuringStep: random() < 0.5 });
    items.push(item);
  }
  return items;
}

/** How a request ended. */
export interface Outcome {
  tokenIds: number[];
  logprobs: number[];
  text: string;
  finishReason?: FinishReason;
  /** Error code. */
  error?: string;
  cachedTokens: number;
  /** For each token, its log-probability minus that of the second best, if two alternatives are reported. */
  gaps: number[];
}

export interface DriveOptions {
  detokenizer: () => Detokenizer;
  eosIds?: readonly number[];
  /** Called before each step with its number, e.g. to change the budget. */
  beforeStep?: (step: number) => void;
  /** Called after each step, e.g. to check integrity. */
  afterStep?: (step: number) => void | Promise<void>;
  /** Gets each outcome when its request has ended. Outcomes are not kept then. */
  onEnd?: (item: WorkItem, outcome: Outcome) => void;
}

/** Runs a workload to its end. Throws if a request ends twice, gets a token after its end, or never ends. */
export async function driveWorkload(
  engine: Engine,
  items: readonly WorkItem[],
  options: DriveOptions,
): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  const open = new Map<string, WorkItem & { at: number }>();
  const add = (item: WorkItem, at: number): void => {
    const outcome: Outcome = { tokenIds: [], logprobs: [], text: '', cachedTokens: 0, gaps: [] };
    const isOpen = (): void => {
      if (outcome.finishReason || outcome.error) throw new Error(`${item.id} hears something after its end.`);
    };
    const end = (): void => {
      outcome.cachedTokens = sequence.cachedTokens;
      open.delete(item.id);
      if (!options.onEnd) return;
      outcomes.delete(item.id);
      options.onEnd(item, outcome);
    };
    const sequence = new Sequence({
      ...item,
      eosIds: options.eosIds ?? [],
      detokenizer: options.detokenizer(),
      onToken: ({ tokenId, logprob, topLogprobs, text }) => {
        isOpen();
        if (topLogprobs.length > 1) outcome.gaps.push(topLogprobs[0]!.logprob - topLogprobs[1]!.logprob);
        outcome.tokenIds.push(tokenId);
        if (logprob !== null) outcome.logprobs.push(logprob);
        outcome.text += text;
      },
      onFinish: (reason, rest) => {
        isOpen();
        outcome.finishReason = reason;
        outcome.text += rest;
        end();
      },
      onError: (error) => {
        isOpen();
        outcome.error = error.code;
        end();
      },
    });
    outcomes.set(item.id, outcome);
    open.set(item.id, { ...item, at });
    engine.add(sequence);
  };

  let next = 0;
  for (let step = 0; next < items.length || open.size > 0; step++) {
    while (next < items.length && items[next]!.arriveStep <= step) add(items[next++]!, step);
    options.beforeStep?.(step);
    const due = [...open.values()].filter((item) => item.abortAfter !== undefined && step >= item.at + item.abortAfter);
    for (const item of due) if (!item.abortDuringStep) engine.abort(item.id);
    const stepped = engine.step();
    for (const item of due) if (item.abortDuringStep) engine.abort(item.id);
    await stepped;
    await options.afterStep?.(step);
    if (step > 1000 * items.length + 100_000)
      throw new Error(`No end after ${step} steps; open: ${[...open.keys()].join(' ')}`);
  }
  if (engine.hasWork()) throw new Error('All requests have ended and the engine has work.');
  return outcomes;
}
