/** The parts of an engine and its limits. */
import type { ApproximationOptions } from '../kv/approx/approximations.ts';
import type { SnapshotOptions } from '../kv/snapshots.ts';
import type { KvPool } from '../kv/pool.ts';
import type { ModelRunner } from '../model/batch.ts';
import type { Needs } from '../scheduler/capacityErrors.ts';
import type { SchedulingPolicy } from '../scheduler/policy.ts';
import type { StepCosts } from '../scheduler/stepPlanner.ts';

export interface EngineOptions extends ApproximationOptions {
  runner: ModelRunner;
  /** Resized by the engine; may start with 0 slots. */
  pool: KvPool;
  /** The memory budget in bytes: pool, store, scratch of the prefill lane, disk buffers, approximate techniques. */
  maxBytes: number;
  /** Number of editor windows that share the memory; 1 when left out. */
  numEditorWindows?: () => number;
  /** The budgets that would be enough, for error messages; these have no sizes when left out. */
  needs?: () => Needs;
  /** The largest budget under the same settings; the lane limit depends on it. `maxBytes` when left out. */
  mostBytes?: number;
  /** Bytes of scratch for a token in the prefill lane. When left out, every token takes the paged lane. */
  prefillBytesPerToken?: number;
  /** The lane limit, in tokens; divideBudget chooses it when left out. */
  prefillTokens?: number;
  /** Most tokens of a sequence, prompt and generated. */
  maxContext: number;
  /** Milliseconds, never going back; performance.now when left out. */
  clock?: () => number;
  /** Step costs that were learnt earlier with this runner; none when left out. */
  stepCosts?: StepCosts;
  /** Tokens per step; learnt from step times when left out. */
  tokenBudget?: number;
  /** Slots up to which the pool grows before it evicts unreferenced runs; 2 * maxContext when left out. */
  softSlots?: number;
  /** The disk tier; none when left out. */
  snapshots?: SnapshotOptions | null;
  /** Whether the disk tier is read and written. Otherwise it takes no memory. True when left out. */
  usesDisk?: boolean;
  /** Called when a sequence has become ready after `add` returned. */
  onReady?: () => void;
  /** SchedulingPolicy when left out. */
  policy?: SchedulingPolicy;
}
