/**
 * The engine: takes sequences, computes their tokens step by step, and does maintenance between steps.
 * While a step runs, changes of the cache (aborts, budget, pins, evictions) wait until it has ended.
 * If `step` rejects, the engine has failed: call `failAll`, then build another engine.
 */
import { Approximations, cacheOptions } from '../kv/approx/approximations.ts';
import { KvCache } from '../kv/kvCache.ts';
import { type FileTokens, Snapshots } from '../kv/snapshots.ts';
import { type ModelRunner, separatesShort } from '../model/batch.ts';
import { RequestError } from '../protocol/errors.ts';
import type { FinishReason, Priority } from '../protocol/tasks.ts';
import { refusalOf } from '../scheduler/capacityErrors.ts';
import { SchedulingPolicy } from '../scheduler/policy.ts';
import { numTokensOf, type Scheduled } from '../scheduler/stepBatch.ts';
import { Scheduler } from '../scheduler/scheduler.ts';
import { Speculation } from '../scheduler/speculation.ts';
import { StepCost, TYPICAL_PREFILL } from '../scheduler/stepCost.ts';
import { StepPlanner } from '../scheduler/stepPlanner.ts';
import type { TokenBudget } from '../scheduler/tokenBudget.ts';
import type { Sequence } from '../sequence/sequence.ts';
import { DiskFetch, FileBlocks } from './fileBlocks.ts';
import type { EngineOptions } from './engineOptions.ts';
import { IdleMaintenance, type MaintenanceOptions, StepGate } from './idleMaintenance.ts';
import { type CoreStats, coreStats, Journal } from './journal.ts';
import { MemoryDivision } from './memoryBudget.ts';
import { Emission } from './stepOutput.ts';
import type { TracedStep } from './trace.ts';

export class Engine {
  /** What is cached of file blocks and prompts. */
  readonly blocks: FileBlocks;
  readonly #runner: ModelRunner;
  readonly #cache: KvCache;
  readonly #approximations: Approximations;
  readonly #scheduler: Scheduler;
  readonly #planner: StepPlanner;
  readonly #speculation = new Speculation();
  readonly #memory: MemoryDivision;
  readonly #disk: Snapshots | null;
  readonly #fetch: DiskFetch;
  readonly #maintenance: IdleMaintenance;
  readonly #gate = new StepGate();
  readonly #journal: Journal;
  readonly #emission: Emission;
  readonly #maxContext: number;
  readonly #clock: () => number;
  readonly #onReady: () => void;
  readonly #sequences = new Map<string, Sequence>();
  /** Sequences that end after the step under way. They get no more tokens. */
  readonly #ending = new Set<string>();

  constructor(options: EngineOptions) {
    const { runner, pool, maxContext, maxBytes, snapshots, numEditorWindows = () => 1, needs = () => null } = options;
    const { clock = () => performance.now(), policy = new SchedulingPolicy() } = options;
    const memory = new MemoryDivision(options);
    const cache = new KvCache({
      ...cacheOptions(options),
      pool,
      maxBytes: memory.divide(maxBytes),
      softSlots: options.softSlots ?? 2 * maxContext,
      clock,
    });
    const approximations = new Approximations(options, { cache, runner, shape: pool.shape, maxContext, clock });
    this.#runner = runner;
    this.#maxContext = maxContext;
    this.#clock = clock;
    this.#onReady = options.onReady ?? (() => {});
    this.#memory = memory;
    this.#cache = cache;
    this.#approximations = approximations;
    this.#disk = snapshots ? new Snapshots(snapshots, cache, clock) : null;
    this.blocks = new FileBlocks({ cache, approximations, gate: this.#gate, memory, disk: this.#disk, clock });
    const { reuse } = approximations;
    const limit = { bytes: () => memory.maxBytes, numEditorWindows, needs };
    this.#scheduler = new Scheduler({ cache, policy, speculation: this.#speculation, reuse, limit });
    this.#journal = new Journal(cache, this.#scheduler, clock());
    this.#emission = new Emission({
      pool,
      scheduler: this.#scheduler,
      journal: this.#journal,
      speculation: this.#speculation,
      isEnding: ({ id }) => this.#ending.has(id),
      onEnd: (sequence, outcome) => this.#end(sequence, outcome),
    });
    const costs = options.stepCosts ?? { pool: new StepCost(), prefill: new StepCost(TYPICAL_PREFILL) };
    this.#planner = new StepPlanner(clock, costs, options.tokenBudget, runner.numHeads);
    this.#fetch = new DiskFetch(cache, this.#gate, this.blocks);
    const hasWork = (): boolean => this.hasWork();
    this.#maintenance = new IdleMaintenance({ cache, approximations, gate: this.#gate, blocks: this.blocks, hasWork });
    this.#applyDivision();
  }

  /** Adds a sequence. One that can never run ends with `onError` at once. Unfinished sequences must differ in id. */
  add(sequence: Sequence): void {
    if (this.#sequences.has(sequence.id)) throw new Error(`There is a request ${sequence.id} already.`);
    sequence.maxContext = this.#maxContext;
    sequence.hasOneLane = this.#runner.hasOneLane ?? false;
    sequence.limitPrefill(this.blocks.laneLimit(sequence.tokenIds.length));
    this.#planner.arrived(sequence, !this.hasWork(false));
    this.#sequences.set(sequence.id, sequence);
    const now = this.#clock();
    sequence.arrivedAt = now;
    const error = refusalOf(sequence, this.#maxContext, this.#runner.vocabSize);
    const schedule = (): void => this.#scheduler.add(sequence, now);
    if (error || !this.#fetch.isUseful(sequence)) schedule();
    else
      void this.#fetch.start(sequence, () => {
        schedule();
        this.#onReady();
      });
    if (error) this.#end(sequence, error);
  }

  /** Whether sequences wait for the disk. `onReady` is called when each of them can run. */
  get isFetching(): boolean {
    return this.#fetch.isActive;
  }

  /** Ends a sequence with `abort`, at the latest after the step under way. Ignores unknown and finished ids. */
  abort(id: string): void {
    this.#endBetweenSteps(id, 'abort');
  }

  /** Ends a sequence with `stop` after the step under way, without further tokens: its shown text is complete. */
  stop(id: string): void {
    this.#endBetweenSteps(id, 'stop');
  }

  /** Gives a sequence another class from the next step on. Ignores unknown and finished ids. */
  prioritise(id: string, priority: Priority): void {
    this.#gate.between(() => {
      const sequence = this.#sequences.get(id);
      if (!sequence) return;
      this.#scheduler.prioritise(sequence, priority);
      if (sequence.numGenerated > 0) return;
      // Nobody has waited for its first token until now. If it runs already, it does not wait for its start.
      sequence.arrivedAt = this.#clock();
      if (!Number.isNaN(sequence.startedAt)) sequence.startedAt = sequence.arrivedAt;
    });
  }

  /** The user is typing: keeps steps short for a while. */
  typed(): void {
    this.#planner.typed();
  }

  /** Whether `step` has something to do. */
  hasWork(includeIdle = true): boolean {
    for (const sequence of this.#sequences.values())
      if ((includeIdle || sequence.priority !== 'idle') && !this.#fetch.has(sequence)) return true;
    return false;
  }

  /** ms that the next step should wait for requests that are about to arrive; mostly 0. Ask again after an arrival. */
  pauseMs(): number {
    return this.#planner.pauseMs(this.#sequences.values(), (sequence) => this.#scheduler.missing(sequence));
  }

  /**
   * One step: schedule, run the model, sample, emit tokens. Does nothing when there is no work.
   * Must not be called again before its promise has settled.
   */
  step(): Promise<void> {
    return this.#gate.step(async () => {
      const start = this.#clock();
      const budget = this.#planner.budget(this.#sequences.values(), this.#scheduler.backlog());
      const { batch, ended } = this.#scheduler.schedule(budget, start);
      const scheduled = this.#clock();
      for (const { sequence, outcome } of ended) this.#end(sequence, outcome);
      if (batch.length === 0) {
        if (ended.length === 0 && this.hasWork()) throw new Error('The scheduler makes no progress.');
        return;
      }
      const logits = await this.#run(batch);
      const run = this.#clock();
      this.#learn(batch, budget, run - scheduled);
      const entry = this.#journal.begin(batch);
      const asking = batch.find(({ numQueries }) => numQueries > 0);
      if (asking) this.#scheduler.saw(asking, this.#runner.queries!);
      const numGenerated = this.#emission.emit(batch, logits, this.#runner.vocabSize, this.#clock());
      entry.finish(numGenerated, { start, scheduled, run, end: this.#clock() });
    });
  }

  async #run(batch: readonly Scheduled[]): Promise<Float32Array> {
    try {
      return await this.#runner.run(batch.map((scheduled) => this.#scheduler.span(scheduled)));
    } catch (error) {
      this.#scheduler.rollBack(batch);
      throw error;
    }
  }

  /** A step took `ms`. The sizes of later steps depend on it. */
  #learn(batch: readonly Scheduled[], budget: TokenBudget, ms: number): void {
    const { paidColumns, copyMs = 0 } = this.#runner;
    this.#planner.learnFrom(batch, paidColumns, ms - copyMs);
    if (batch.some(({ prefill }) => prefill)) return;
    this.#speculation.observe(numTokensOf(batch), ms, budget.columnMs(paidColumns));
  }

  /** Bytes that count under the budget, as they are now. */
  get cacheBytes(): number {
    return this.#cache.memory.bytes + (this.#runner.scratchBytes ?? 0) + this.#bufferBytes;
  }

  /** Bytes of buffers and approximate techniques, as they are now. */
  get #bufferBytes(): number {
    return this.#memory.bufferBytes + this.#approximations.bytes;
  }

  /** Sets the memory budget. Preempts sequences that no longer fit. `mostBytes`, `usesDisk`: as in EngineOptions. */
  setMaxBytes(maxBytes: number, options: Pick<EngineOptions, 'mostBytes' | 'usesDisk'> = {}): void {
    const memory = this.#memory;
    const { mostBytes = memory.mostBytes, usesDisk = memory.usesDisk } = options;
    this.#gate.between(() => {
      memory.mostBytes = mostBytes;
      memory.usesDisk = usesDisk;
      this.#scheduler.setMaxBytes(memory.divide(maxBytes), memory.prefillTokens);
      this.#applyDivision();
      // The scratch may be larger than its new share. Rows that are still needed are read from the pool again.
      this.#runner.releaseScratch?.();
    });
  }

  /** Passes a new division of the budget on to runner and cache. */
  #applyDivision(): void {
    const { prefillTokens } = this.#memory;
    this.#runner.separatesShort = separatesShort(prefillTokens);
    this.#cache.longContexts.prefillTokens = prefillTokens;
  }

  /** Does a little maintenance while idle. Requests may arrive meanwhile. False: there is nothing to do. */
  runMaintenance(blocks: readonly FileTokens[], options: MaintenanceOptions = {}): Promise<boolean> {
    return this.#maintenance.run(blocks, options);
  }

  /** Writes one segment of blocks unused for at least `quietMs` to the disk. False: there is nothing to write. */
  save(blocks: readonly FileTokens[], quietMs = 0): Promise<boolean> {
    return this.#maintenance.save(blocks, quietMs);
  }

  /** The last steps, oldest first. */
  trace(): TracedStep[] {
    return this.#journal.trace();
  }

  /** Counters and times since the start, and the sizes of now. */
  stats(): CoreStats {
    return coreStats({
      journal: this.#journal.stats(this.#clock()),
      numFetching: this.#fetch.numWaiting,
      cache: this.#cache,
      approximations: this.#approximations,
      disk: this.#disk,
      diskFault: this.blocks.usedDisk?.fault ?? null,
      maxBytes: this.#memory.maxBytes,
      scratchBytes: this.#runner.scratchBytes ?? 0,
      bufferBytes: this.#bufferBytes,
    });
  }

  /** Ends all sequences with `onError`. After a failed step the engine must not be used any more. */
  failAll(error: RequestError): void {
    this.close();
    for (const sequence of [...this.#sequences.values()]) this.#end(sequence, error);
    this.#gate.clear();
    this.#ending.clear();
  }

  /** Pool and runner belong to another engine from now on: nothing more is read from the disk. */
  close(): void {
    this.#disk?.close();
  }

  /** For tests, between steps: throws at the first broken invariant of the cache. */
  checkIntegrity(): void {
    this.#cache.checkIntegrity();
  }

  #end(sequence: Sequence, outcome: FinishReason | RequestError): void {
    this.#fetch.delete(sequence);
    this.#scheduler.remove(sequence);
    this.#sequences.delete(sequence.id);
    this.#journal.ended(sequence, outcome, this.#clock());
    if (outcome instanceof RequestError) sequence.fail(outcome);
    else sequence.finish(outcome);
  }

  #endBetweenSteps(id: string, reason: FinishReason): void {
    this.#ending.add(id);
    this.#gate.between(() => {
      this.#ending.delete(id);
      const sequence = this.#sequences.get(id);
      if (sequence) this.#end(sequence, reason);
    });
  }
}
