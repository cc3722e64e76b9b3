/**
 * The engine: sequences in, tokens out, one step at a time. Owns the order of a step and of what happens between steps.
 * The
 * scheduler decides what a step computes, the cache where rows lie, the runner computes.
 *
 * While a step runs, changes of the cache (aborts, another budget, pins, evictions) wait. If `step` rejects, the engine
 * has
 * failed: call `failAll`, then build another engine.
 */
import { t } from '@vscode/l10n';
import { Approximations, cacheOptions } from '../kv/approx/approximations.ts';
import { type FileTokens, Snapshots } from '../kv/snapshots.ts';
import { KvCache } from '../kv/kvCache.ts';
import { clipped, laneIds, type TokenRange } from '../kv/laneIds.ts';
import { type Block, outline } from '../kv/outline.ts';
import { type ModelRunner, separatesShort } from '../model/batch.ts';
import { RequestError } from '../protocol/errors.ts';
import type { TreeNode } from '../protocol/stats.ts';
import type { FinishReason, Priority } from '../protocol/tasks.ts';
import { ALL_POLICIES } from '../scheduler/policies.ts';
import { numTokensOf, type Scheduled } from '../scheduler/schedule.ts';
import { Scheduler } from '../scheduler/scheduler.ts';
import { Speculation } from '../scheduler/speculation/speculation.ts';
import { StepCost, TYPICAL_PREFILL } from '../scheduler/stepCost.ts';
import { StepPlanner } from '../scheduler/stepPlanner.ts';
import type { TokenBudget } from '../scheduler/tokenBudget.ts';
import type { Sequence } from '../sequence/sequence.ts';
import { type CoreStats, coreStats } from './coreStats.ts';
import { DiskFetch } from './diskFetch.ts';
import type { EngineOptions } from './engineOptions.ts';
import { IdleMaintenance, type MaintenanceOptions } from './idleMaintenance.ts';
import { Journal } from './journal.ts';
import { laneLimits, MemoryDivision } from './memoryDivision.ts';
import { StepGate } from './stepGate.ts';
import { Emission } from './stepOutput.ts';
import type { TracedStep } from './trace.ts';

export class Engine {
  readonly #runner: ModelRunner;
  readonly #cache: KvCache;
  readonly #approximations: Approximations;
  readonly #scheduler: Scheduler;
  readonly #planner: StepPlanner;
  readonly #speculation: Speculation | null;
  readonly #memory: MemoryDivision;
  /** The disk tier. Files can be removed from it also while it is not used. */
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
  /** Sequences that end after the step under way: they get no more tokens. */
  readonly #ending = new Set<string>();

  constructor(options: EngineOptions) {
    const { runner, pool, maxContext, maxBytes, snapshots, numEditorWindows, needs } = options;
    const clock = options.clock ?? (() => performance.now());
    const policies = { ...ALL_POLICIES, ...options.policies };
    this.#runner = runner;
    this.#maxContext = maxContext;
    this.#clock = clock;
    this.#onReady = options.onReady ?? (() => {});
    this.#memory = new MemoryDivision(options);
    const cache = new KvCache({
      ...cacheOptions(options),
      pool,
      maxBytes: this.#memory.divide(maxBytes),
      softSlots: options.softSlots ?? 2 * maxContext,
      clock,
    });
    this.#cache = cache;
    if (numEditorWindows) cache.numEditorWindows = numEditorWindows;
    if (needs) cache.needs = needs;
    this.#divided();
    this.#disk = snapshots ? new Snapshots(snapshots, cache, clock) : null;
    this.#approximations = new Approximations(options, { cache, runner, shape: pool.shape, maxContext, clock });
    this.#speculation = policies.speculation ? new Speculation() : null;
    this.#scheduler = new Scheduler(cache, policies, this.#speculation, this.#approximations.reuse);
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
    this.#planner = new StepPlanner(policies, clock, costs, options.tokenBudget, runner.numHeads);
    const usedDisk = (): Snapshots | null => this.#usedDisk;
    this.#fetch = new DiskFetch(cache, this.#gate, usedDisk);
    this.#maintenance = new IdleMaintenance({
      cache,
      approximations: this.#approximations,
      gate: this.#gate,
      disk: usedDisk,
      blockIds: (tokenIds) => this.#blockIds(tokenIds),
      hasWork: () => this.hasWork(),
    });
  }

  /**
   * Adds a sequence. One that can never run ends with `onError` at once. Ids must differ among unfinished sequences.
   */
  add(sequence: Sequence): void {
    if (this.#sequences.has(sequence.id)) throw new Error(`There is a request ${sequence.id} already.`);
    sequence.maxContext = this.#maxContext;
    sequence.limitPrefill(this.#laneLimit(sequence.tokenIds.length));
    this.#planner.arrived(sequence, !this.hasWork(false));
    this.#sequences.set(sequence.id, sequence);
    const now = this.#clock();
    sequence.arrivedAt = now;
    const error = this.#refusal(sequence);
    const schedule = (): void => this.#scheduler.add(sequence, now);
    if (error || !this.#fetch.isUseful(sequence)) schedule();
    else
      void this.#fetch.start(sequence, () => {
        schedule();
        this.#onReady();
      });
    if (error) this.#end(sequence, error);
  }

  /** Whether sequences wait for the disk; `onReady` is called when they have waited. */
  get isFetching(): boolean {
    return this.#fetch.isActive;
  }

  /** Ends a sequence with `abort`, at the latest after the step under way. Unknown and finished ids are ignored. */
  abort(id: string): void {
    this.#endBetweenSteps(id, 'abort');
  }

  /** Ends a sequence with `stop` after the step under way, without further tokens: its shown text is complete. */
  stop(id: string): void {
    this.#endBetweenSteps(id, 'stop');
  }

  /** Gives a sequence another class from the next step on. Unknown and finished ids are ignored. */
  prioritise(id: string, priority: Priority): void {
    this.#gate.between(() => {
      const sequence = this.#sequences.get(id);
      if (!sequence) return;
      this.#scheduler.prioritise(sequence, priority);
      if (sequence.numGenerated > 0) return;
      // Nobody has waited for its first token until now. A sequence that runs already does not wait for its start.
      sequence.arrivedAt = this.#clock();
      if (!Number.isNaN(sequence.startedAt)) sequence.startedAt = sequence.arrivedAt;
    });
  }

  /** Someone is typing: steps are kept short for a while. */
  typed(): void {
    this.#planner.typed();
  }

  /** Whether `step` has something to do. */
  hasWork(includeIdle = true): boolean {
    for (const sequence of this.#sequences.values())
      if ((includeIdle || sequence.priority !== 'idle') && !this.#fetch.has(sequence)) return true;
    return false;
  }

  /** ms that the next step should wait, for requests that are about to arrive; mostly 0. Ask again after an arrival. */
  pauseMs(): number {
    return this.#planner.pauseMs(this.#sequences.values(), (sequence) => this.#scheduler.missing(sequence));
  }

  /**
   * One step: schedule, run, sample, emit. Having nothing to do is no error. Must not be called again before it has
   * settled.
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

  /** Bytes that count under the budget, as they are now. */
  get cacheBytes(): number {
    return this.#cache.memory.bytes + (this.#runner.scratchBytes ?? 0) + this.#bufferBytes;
  }

  /**
   * Sets the memory budget. Sequences that no longer fit are preempted. `mostBytes`, `usesDisk`: as in EngineOptions.
   */
  setMaxBytes(
    maxBytes: number,
    {
      mostBytes = this.#memory.mostBytes,
      usesDisk = this.#memory.usesDisk,
    }: Pick<EngineOptions, 'mostBytes' | 'usesDisk'> = {},
  ): void {
    this.#gate.between(() => {
      this.#memory.mostBytes = mostBytes;
      this.#memory.usesDisk = usesDisk;
      this.#scheduler.setMaxBytes(this.#memory.divide(maxBytes), this.#memory.prefillTokens);
      this.#divided();
      // The scratch may be larger than its new share. Rows that are still needed are read from the pool again.
      this.#runner.releaseScratch?.();
    });
  }

  /** Evicts the rows of a prefix last, also those computed later, until the key's prefix is replaced or null. */
  pin(key: string, tokenIds: readonly number[] | null): void {
    this.#gate.between(() => this.#cache.prefixes.pin(key, tokenIds && this.#blockIds(tokenIds)));
  }

  /**
   * A little maintenance while idle, see IdleMaintenance. Requests may come meanwhile. False: there is nothing to do.
   */
  runMaintenance(blocks: readonly FileTokens[], options: MaintenanceOptions = {}): Promise<boolean> {
    return this.#maintenance.run(blocks, options);
  }

  /**
   * Writes a segment of these blocks to the disk, if they have not been used for so long. False: there is nothing to
   * write.
   */
  save(blocks: readonly FileTokens[], quietMs = 0): Promise<boolean> {
    return this.#maintenance.save(blocks, quietMs);
  }

  /**
   * Removes files with this path from the disk; without a path, all files but those with the `kept` paths, of all
   * models.
   */
  async forgetDisk(path?: string, kept: readonly string[] = []): Promise<void> {
    await this.#disk?.forget(path, kept);
  }

  /** Drops unused rows that begin with a prefix: without one, all but `pinned` ones; with one, pinned ones too. */
  evict(prefix: readonly number[] = [], { pinned = prefix.length > 0 } = {}): void {
    this.#gate.between(() => {
      for (const ids of this.#everyBlockIds(prefix)) this.#cache.prefixes.evict(ids, pinned);
    });
  }

  /**
   * What is cached of a file block or prompt. `prefill`: its tokens for the prefill lane. `diskTokens`: behind those in
   * memory.
   */
  describe(
    tokenIds: readonly number[],
    prefill: readonly TokenRange[] = [[0, tokenIds.length]],
  ): ReturnType<Approximations['describe']> & { diskTokens: number } {
    const ids = laneIds(tokenIds, clipped(prefill, this.#laneLimit(tokenIds.length)));
    const found = this.#approximations.describe(ids);
    const diskTokens = this.#usedDisk?.missing(ids, ids.length, found.tokens) ?? 0;
    return { ...found, tier: found.tokens < diskTokens ? 'disk' : found.tier, diskTokens };
  }

  /** Drops approximate rows of this block where exact ones have been computed since. */
  dropApproximate(tokenIds: readonly number[]): void {
    this.#gate.between(() => this.#approximations.reuse.drop(this.#blockIds(tokenIds)));
  }

  /** The radix tree for the monitor, with the files' blocks named. */
  outline(blocks: readonly Block[]): TreeNode[] {
    return outline(
      this.#cache.memory.tree,
      blocks.map((block) => ({ ...block, tokenIds: this.#blockIds(block.tokenIds) })),
      this.#clock(),
    );
  }

  /** The last steps, oldest first. */
  trace(): TracedStep[] {
    return this.#journal.trace();
  }

  stats(): CoreStats {
    return coreStats({
      journal: this.#journal.stats(this.#clock()),
      numFetching: this.#fetch.numWaiting,
      cache: this.#cache,
      approximations: this.#approximations,
      disk: this.#disk,
      diskFault: this.#usedDisk?.fault ?? null,
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

  async #run(batch: readonly Scheduled[]): Promise<Float32Array> {
    try {
      return await this.#runner.run(batch.map((scheduled) => this.#scheduler.span(scheduled)));
    } catch (error) {
      this.#scheduler.rollBack(batch);
      throw error;
    }
  }

  /** A step took `ms`: later steps are sized by it. */
  #learn(batch: readonly Scheduled[], budget: TokenBudget, ms: number): void {
    const { paidColumns, copyMs = 0 } = this.#runner;
    const numTokens = numTokensOf(batch);
    const prefill = batch.find(({ lane }) => lane === 'prefill') ?? null;
    this.#planner.learn(
      numTokens - (prefill?.count ?? 0),
      paidColumns,
      prefill && { count: prefill.count, startIndex: prefill.startIndex - prefill.lease.numPruned },
      ms - copyMs,
    );
    if (batch.every(({ prefill }) => !prefill)) this.#speculation?.observe(numTokens, ms, budget.columnMs(paidColumns));
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

  #refusal({ numPromptTokens, tokenIds }: Sequence): RequestError | null {
    if (numPromptTokens >= this.#maxContext) {
      return new RequestError(
        'contextTooLong',
        t(
          'The prompt has {0} tokens, but the context holds {1} including the answer. Send less text or use a longer context.',
          numPromptTokens,
          this.#maxContext,
        ),
      );
    }
    const { vocabSize } = this.#runner;
    const unknown = tokenIds.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
    return unknown === undefined
      ? null
      : new RequestError('badRequest', `Token id ${unknown} is not in the vocabulary of ${vocabSize}.`);
  }

  get #usedDisk(): Snapshots | null {
    return this.#memory.usesDisk ? this.#disk : null;
  }

  /** Bytes of buffers and approximate techniques, as they are now. */
  get #bufferBytes(): number {
    return this.#memory.bufferBytes + this.#approximations.bytes;
  }

  /** Tells the others of another division of the budget. */
  #divided(): void {
    const { maxBytes, prefillTokens } = this.#memory;
    this.#runner.separatesShort = separatesShort(prefillTokens);
    this.#cache.longContexts.prefillTokens = prefillTokens;
    this.#cache.displayedLimitBytes = maxBytes;
  }

  /** A file block, or the beginning of one, as the cache knows it. */
  #blockIds(tokenIds: readonly number[]): number[] {
    return laneIds(tokenIds, [[0, this.#laneLimit(tokenIds.length)]]);
  }

  /** The same, for each lane limit under which it may have been computed. */
  #everyBlockIds(tokenIds: readonly number[]): number[][] {
    const { length } = tokenIds;
    const limits = new Set([...laneLimits(length), Math.min(length, this.#laneLimit(length))]);
    return Array.from(limits, (limit) => laneIds(tokenIds, [[0, limit]]));
  }

  #laneLimit(numTokens: number): number {
    return this.#memory.laneLimit(numTokens, this.#cache);
  }
}
