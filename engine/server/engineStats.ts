/** Makes the reply to a `stats` message, with or without a model. Does not count anything. */
import { memoryStats } from '../core/memoryBudget.ts';
import { Metrics } from '../core/metrics.ts';
import type { EngineStats } from '../protocol/stats.ts';
import type { LoadedModel } from './loadedModel.ts';
import type { OpenFiles } from './openFiles.ts';

const UNUSED = new Metrics();
const EMPTY_STATS: Omit<EngineStats, 'memory' | 'files'> = {
  model: null,
  maxBytes: 0,
  poolBytes: 0,
  storeBytes: 0,
  scratchBytes: 0,
  bufferBytes: 0,
  diskBytes: 0,
  diskMaxBytes: 0,
  kvBytesPerToken: 0,
  poolSlots: { total: 0, free: 0, held: 0 },
  requests: { waiting: 0, running: 0, done: 0, failed: 0, aborted: 0 },
  tokens: { ...UNUSED.tokens, promptFromDisk: 0, promptShifted: 0 },
  events: { steps: 0, evictions: 0, preemptions: 0, promotions: 0, demotions: 0 },
  tokensPerSecond: 0,
  utilisation: 0,
  busyMs: 0,
  stepMs: UNUSED.stepMs(),
  batchTokens: 0,
  batchSequences: 0,
  ttftMs: UNUSED.ttftMs(),
  classes: UNUSED.classes(),
};

/** @param withTree whether the reply has the radix tree */
export function statsOf(model: LoadedModel | null, { ledger, documents }: OpenFiles, withTree: boolean): EngineStats {
  const memory = memoryStats();
  if (!model) return { ...EMPTY_STATS, memory, files: [] };
  const { engine, info, layout, numEngines, diskFault } = model;
  const blocks = ledger.blocks(documents, layout);
  return {
    model: info,
    ...(diskFault === null ? {} : { diskFault }),
    ...engine.stats(),
    ...(numEngines > 1 ? { numEngines } : {}),
    memory,
    files: ledger.stats(blocks, engine),
    ...(withTree ? { tree: engine.blocks.outline(blocks) } : {}),
  };
}
