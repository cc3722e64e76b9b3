/**
 * Suite `strategies`: repeats the study of cache strategies (none, dynamic, static) with similar conversations, and
 * adds the engine's own pool, which keeps computed rows between turns. Each strategy gives 90 answers: three
 * conversations of six turns, five times. The suite fails if the strategies write different tokens.
 */
import path from 'node:path';
import { Engine } from '../../../engine/core/engine.ts';
import type { TokenRange } from '../../../engine/kv/laneIds.ts';
import { importModel } from '../../../engine/model/import/importModel.ts';
import { kvShape } from '../../../engine/model/load/importedModel.ts';
import type { Runner } from '../../../engine/model/batch.ts';
import { openRunner } from '../../../engine/model/calibrate/threadChoice.ts';
import type { ChatMessage } from '../../../engine/protocol/tasks.ts';
import { Sequence } from '../../../engine/sequence/sequence.ts';
import { prepareChat } from '../../../engine/tasks/chatTask.ts';
import { Layout } from '../../../engine/text/prompt/layout.ts';
import { ModelText } from '../../../engine/text/format/modelText.ts';
import { KvPool } from '../../../engine/kv/pool.ts';
import { SCENARIOS } from './scenarios.ts';
import { strategiesCharts, strategiesCsv, strategiesReport } from './strategiesReport.ts';
import { type Answer, DynamicCache, NoCache, StaticCache, type Strategy } from './strategies.ts';

const STARTER = path.resolve(import.meta.dirname, '../../../model');
/** Number of repetitions of each conversation. */
const SAMPLES = 5;
const ANSWER_TOKENS = 32;
const MAX_BYTES = 256e6;

export interface TurnRecord {
  strategy: string;
  scenario: string;
  sample: number;
  turn: number;
  contextTokens: number;
  tokens: number;
  seconds: number;
  keptBytes: number;
  peakBytes: number;
}

export interface StrategiesBench {
  model: string;
  threads: number;
  contextTokens: number;
  records: TurnRecord[];
}

/** The engine with its pool, its radix tree and continuous batching. */
class PoolCache implements Strategy {
  readonly name = 'pool';
  readonly #engine: Engine;
  #numAsked = 0;

  constructor(runner: Runner, contextTokens: number) {
    this.#engine = new Engine({
      runner,
      pool: runner.pool,
      maxBytes: MAX_BYTES,
      maxContext: contextTokens,
      prefillBytesPerToken: runner.prefillBytesPerToken,
    });
  }

  get #bytes(): number {
    const { poolBytes, storeBytes } = this.#engine.stats();
    return poolBytes + storeBytes;
  }

  async answer(
    promptIds: readonly number[],
    prefill: readonly TokenRange[],
    maxTokens: number,
    stopIds: readonly number[],
  ): Promise<Answer> {
    const before = this.#bytes;
    let peakBytes = before;
    const tokenIds: number[] = [];
    let ended = false;
    this.#engine.add(
      new Sequence({
        id: `answer${this.#numAsked++}`,
        priority: 'chat',
        promptIds,
        prefill,
        sampling: { temperature: 0, maxTokens },
        eosIds: stopIds,
        draftSources: null,
        detokenizer: { push: () => '', flush: () => '' },
        onToken: ({ tokenId }) => tokenIds.push(tokenId),
        onFinish: () => (ended = true),
        onError: (error) => {
          throw error;
        },
      }),
    );
    while (!ended) {
      await this.#engine.step();
      peakBytes = Math.max(peakBytes, this.#bytes);
    }
    return { tokenIds, peakBytes, keptBytes: this.#bytes - before };
  }
}

/** Strategies by name, in the order of the study. */
const STRATEGIES = { none: NoCache, dynamic: DynamicCache, static: StaticCache, pool: PoolCache } as const;
type StrategyName = keyof typeof STRATEGIES;
const ALL = Object.keys(STRATEGIES) as StrategyName[];

/** @param only strategies to run; all by default. */
export async function strategiesBench({
  only = ALL,
  samples = SAMPLES,
  answerTokens = ANSWER_TOKENS,
  threads = 0,
  cacheDir = path.resolve('.cache/bench/imported'),
  scenarios = SCENARIOS,
  onProgress = () => {},
}: {
  only?: readonly StrategyName[];
  samples?: number;
  answerTokens?: number;
  threads?: number;
  cacheDir?: string;
  scenarios?: typeof SCENARIOS;
  onProgress?: (line: string) => void;
} = {}): Promise<StrategiesBench> {
  const model = await importModel({ modelDir: STARTER, cacheDir, precision: 'int8' });
  const { contextTokens } = model.config;
  const layout = new Layout(await ModelText.load(STARTER), { contextTokens, numParameters: model.parameters });
  const runner = await openRunner(model, new KvPool(kvShape(model.config, 'int8', model.biased), 0), {
    threads,
  });
  const records: TurnRecord[] = [];
  try {
    for (let sample = 0; sample < samples; sample++) {
      for (const { name: scenario, system, questions } of scenarios) {
        // The order changes, so that slow changes of the machine's speed affect all strategies equally.
        const written = new Map<string, string>();
        for (let i = 0; i < only.length; i++) {
          const strategy = new STRATEGIES[only[(i + sample) % only.length]!](runner, contextTokens);
          // The customer's number differs between samples, so that no sample reuses another's conversation.
          const messages: ChatMessage[] = [];
          for (const [turn, question] of questions.entries()) {
            messages.push({
              role: 'user',
              content: turn === 0 ? `${system}\n\nCustomer ${sample + 1}: ${question}` : question,
            });
            const { promptIds, prefill, stopTokenIds } = prepareChat(
              layout,
              { messages, docs: [] },
              { maxTokens: answerTokens },
            );
            const start = performance.now();
            const { tokenIds, peakBytes, keptBytes } = await strategy.answer(
              promptIds,
              prefill,
              answerTokens,
              stopTokenIds,
            );
            const seconds = (performance.now() - start) / 1000;
            const key = `${turn}`;
            if (written.has(key) && written.get(key) !== String(tokenIds))
              throw new Error(`${scenario}, turn ${turn + 1}: ${strategy.name} wrote other tokens than the others.`);
            written.set(key, String(tokenIds));
            records.push({
              strategy: strategy.name,
              scenario,
              sample,
              turn,
              contextTokens: promptIds.length,
              tokens: tokenIds.length,
              seconds,
              keptBytes,
              peakBytes,
            });
            messages.push({
              role: 'assistant',
              content: layout.text.tokenizer.decode(tokenIds.filter((id) => !stopTokenIds.includes(id))) || '.',
            });
          }
          runner.pool.resize(0);
        }
        onProgress(`sample ${sample + 1}, ${scenario}`);
      }
    }
  } finally {
    await runner.dispose();
  }
  return { model: 'built-in', threads: runner.threads, contextTokens, records };
}

/** @throws Error that lists the known strategies. */
function strategiesNamed(only: string): StrategyName[] {
  const names = only.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !Object.hasOwn(STRATEGIES, name));
  if (unknown.length)
    throw new Error(`--only ${unknown.join(',')}: there is no such strategy; there are ${ALL.join(', ')}`);
  return names as StrategyName[];
}

export async function strategiesSuite({
  threads,
  only,
}: {
  threads?: string;
  only?: string;
}): Promise<{ result: StrategiesBench; report: string; charts: { [file: string]: string } }> {
  const result = await strategiesBench({
    ...(only === undefined ? {} : { only: strategiesNamed(only) }),
    threads: Number(threads ?? 0),
    onProgress: (line) => console.error(line),
  });
  return {
    result,
    report: strategiesReport(result),
    charts: { ...strategiesCharts(result), 'strategies.csv': strategiesCsv(result.records) },
  };
}
