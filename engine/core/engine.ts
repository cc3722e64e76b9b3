/**
 * The engine: sequences in, tokens out, one step at a time. Owns the order of a step and of what happens between
 * steps; who runs is the scheduler's, where rows lie is the cache's, tensors are the runner's.
 *
 * A step awaits the runner. What must not happen while it runs (aborts, another budget, pins, evictions) is kept until
 * the step has ended. If `step` rejects, the engine has failed: `failAll`, then build another one.
 */
import { t } from '@vscode/l10n';
import { type ModelRunner, scratchRows, separatesShort } from '../model/batch.ts';
import { kernelBytes } from '../kv/approx/codecs/kernels.ts';
import { codingBytes, sketchingBytes } from '../kv/approx/compression.ts';
import { canSketch } from '../kv/approx/sparse/keySketch.ts';
import { KvCache, type Needs } from '../kv/kvCache.ts';
import type { Compression } from '../kv/approx/compression.ts';
import type { SpillFile } from '../kv/disk/spillFile.ts';
import type { Block } from '../kv/outline.ts';
import type { KvPool } from '../kv/pool.ts';
import { kvBytesPerToken } from '../kv/kvRows.ts';
import { Emission } from './stepOutput.ts';
import { RequestError } from '../protocol/errors.ts';
import { Journal } from './journal.ts';
import { clipped, laneIds, type TokenRange } from '../kv/laneIds.ts';
import { type DividedBudget, divideBudget, laneLimits } from './memoryBudget.ts';
import { ALL_POLICIES, type Policies } from '../scheduler/policies.ts';
import { StepCost, TYPICAL_PREFILL } from '../scheduler/stepCost.ts';
import type { EngineStats, TreeNode } from '../protocol/stats.ts';
import type { FinishReason, Priority } from '../protocol/tasks.ts';
import { numTokensOf, type Scheduled } from '../scheduler/schedule.ts';
import { Scheduler } from '../scheduler/scheduler.ts';
import type { Sequence } from '../sequence/sequence.ts';
import { ShiftedReuse } from '../scheduler/shiftedReuse.ts';
import { type Context, Pruning, type PruningOptions } from './pruning.ts';
import { type FileTokens, QUIET_MS, type SnapshotOptions, Snapshots } from './snapshots.ts';
import { Speculation } from '../scheduler/speculation/speculation.ts';
import { type StepCosts, StepPlanner } from '../scheduler/stepPlanner.ts';
import type { TracedStep } from './trace.ts';

export interface EngineOptions {
  runner: ModelRunner;
  /** Resized by the engine; may start with 0 slots. */
  pool: KvPool;
  /** PoolBudget of pool, store, the prefill lane's scratch, the disk tier's buffers and the codecs' kernels. */
  maxBytes: number;
  /** How many windows share the memory that it is a part of; one when left out. */
  numEditorWindows?: () => number;
  /** What is said where there is no room: what would be enough; without figures when left out. */
  needs?: () => Needs;
  /** What the budget may come to under the same settings: the lane limit goes by it (see divideBudget). `maxBytes` when left out. */
  mostBytes?: number;
  /** Of the scratch; without it every token takes the paged lane. */
  prefillBytesPerToken?: number;
  /** The lane limit; divideBudget says it when left out. */
  prefillTokens?: number;
  /** Longest sequence, prompt and generated tokens. */
  maxContext: number;
  /** Milliseconds, never going back; performance.now when left out. */
  clock?: () => number;
  /** What has been learnt of this runner's steps, to go on with; nothing when left out. */
  stepCosts?: StepCosts;
  /** Tokens per step; learnt from step times when left out. */
  tokenBudget?: number;
  /** Slots up to which the pool grows rather than reuses those of unreferenced runs; 2 * maxContext when left out. */
  softSlots?: number;
  /** Whether requests may take over rows of an older version of their text (see shiftedReuse). */
  reuseShifted?: boolean;
  /** What is long out of use is compressed; nothing is when left out. */
  compression?: Compression | null;
  /** For contexts that are longer than the pool; they are refused when left out. */
  spillFile?: SpillFile | null;
  /** Layers whose keys are coded without their bias; none when left out. */
  biased?: ReadonlySet<number>;
  /** Rows of what is long out of use are let go; none are when left out. */
  pruning?: PruningOptions | null;
  /** The disk tier; none when left out. */
  snapshots?: SnapshotOptions | null;
  /** Whether it is read and written; otherwise it takes no memory. It is when left out. */
  usesDisk?: boolean;
  /** There is work that was not there when `add` returned. */
  onReady?: () => void;
  /** For benchmarks: policies other than the usual ones. */
  policies?: Partial<Policies>;
}

export type CoreStats = Omit<EngineStats, 'model' | 'files' | 'memory' | 'tree'>;

export class Engine {
  readonly #runner: ModelRunner;
  readonly #pool: KvPool;
  readonly #cache: KvCache;
  readonly #scheduler: Scheduler;
  readonly #planner: StepPlanner;
  readonly #speculation: Speculation | null;
  readonly #shifted: ShiftedReuse | null;
  /** The disk tier; what is on the disk can be removed, also where there is no room to use it. */
  readonly #disk: Snapshots | null;
  #usesDisk: boolean;
  /** Of what is read from the disk or written to it, at most. */
  readonly #mostBufferBytes: number;
  readonly #onReady: () => void;
  readonly #pruning: Pruning | null;
  readonly #policies: Policies;
  readonly #maxContext: number;
  readonly #clock: () => number;
  readonly #journal: Journal;
  readonly #emission: Emission;
  readonly #prefillBytesPerToken: number;
  readonly #givenPrefill: number | undefined;
  /** Tokens for which the prefill lane has room. */
  #mostPrefill = 0;
  /** That the kernels' memory comes to with what this cache codes and sketches. */
  readonly #mostKernelBytes: number;
  /** PoolBudget of pool, store, scratch, these buffers and the kernels' memory. */
  #maxBytes = 0;
  /** What it may come to. */
  #mostBytes: number;
  readonly #sequences = new Map<string, Sequence>();
  /** Those of them whose prompts are being read from the disk. */
  readonly #fetching = new Set<Sequence>();
  /** Sequences that are to end after the step under way: they get no more tokens. */
  readonly #ending = new Set<string>();
  #stepping = false;
  /** What runs in a idle moment and ends soon once there is work. */
  #maintenanceWork: Promise<unknown> | null = null;
  /** What waits for the end of the step. */
  #afterStep: (() => void)[] = [];

  constructor(options: EngineOptions) {
    this.#runner = options.runner;
    this.#pool = options.pool;
    this.#maxContext = options.maxContext;
    this.#clock = options.clock ?? (() => performance.now());
    const { pool, softSlots = 2 * options.maxContext } = options;
    this.#prefillBytesPerToken = options.prefillBytesPerToken ?? 0;
    this.#givenPrefill = options.prefillTokens;
    this.#mostBytes = options.mostBytes ?? options.maxBytes;
    this.#usesDisk = options.usesDisk ?? true;
    this.#mostBufferBytes = options.snapshots ? Snapshots.bufferBytes(pool.shape) : 0;
    this.#mostKernelBytes = Math.max(
      codingBytes(options.compression ?? null),
      options.spillFile && canSketch(pool.shape) ? sketchingBytes(pool.shape) : 0,
    );
    this.#cache = new KvCache({
      pool,
      maxBytes: this.#divide(options.maxBytes),
      softSlots,
      clock: this.#clock,
      compression: options.compression,
      spillFile: options.spillFile,
      ranks: { ...ALL_POLICIES, ...options.policies }.sketch,
      biased: options.biased,
      staleMs: options.pruning?.idleMs,
    });
    this.#cache.sparse.room.prefillTokens = this.#mostPrefill;
    this.#cache.displayedLimitBytes = options.maxBytes;
    if (options.numEditorWindows) this.#cache.numEditorWindows = options.numEditorWindows;
    if (options.needs) this.#cache.needs = options.needs;
    this.#disk = options.snapshots ? new Snapshots(options.snapshots, this.#cache, this.#clock) : null;
    this.#pruning = options.pruning
      ? new Pruning(options.pruning, {
          cache: this.#cache,
          runner: this.#runner,
          shape: pool.shape,
          maxContext: this.#maxContext,
          clock: this.#clock,
        })
      : null;
    this.#onReady = options.onReady ?? (() => {});
    this.#policies = { ...ALL_POLICIES, ...options.policies };
    this.#speculation = this.#policies.speculation ? new Speculation() : null;
    const shiftKeys = options.reuseShifted ? this.#runner.shiftKeys?.bind(this.#runner) : undefined;
    this.#shifted = shiftKeys ? new ShiftedReuse(this.#cache, shiftKeys) : null;
    this.#scheduler = new Scheduler(this.#cache, this.#policies, this.#speculation, this.#shifted);
    this.#journal = new Journal(this.#cache, this.#scheduler, this.#clock());
    this.#emission = new Emission({
      pool,
      scheduler: this.#scheduler,
      journal: this.#journal,
      speculation: this.#speculation,
      isEnding: ({ id }) => this.#ending.has(id),
      onEnd: (sequence, outcome) => this.#end(sequence, outcome),
    });
    this.#planner = new StepPlanner(
      this.#policies,
      this.#clock,
      options.stepCosts ?? { pool: new StepCost(), prefill: new StepCost(TYPICAL_PREFILL) },
      options.tokenBudget,
      options.runner.numHeads,
    );
  }

  /** Takes a sequence in. One that can never run ends with `onError` at once. Ids must differ among unfinished ones. */
  add(sequence: Sequence): void {
    if (this.#sequences.has(sequence.id)) throw new Error(`There is a request ${sequence.id} already.`);
    sequence.maxContext = this.#maxContext;
    sequence.limitPrefill(this.#laneLimit(sequence.tokenIds.length));
    this.#planner.arrived(sequence, !this.hasWork(false));
    this.#sequences.set(sequence.id, sequence);
    const now = this.#clock();
    // Also of one that waits for the disk first.
    sequence.arrivedAt = now;
    const error = this.#refusal(sequence);
    if (!error && this.#isOnDisk(sequence)) void this.#fetch(sequence, now);
    else this.#scheduler.add(sequence, now);
    if (error) this.#end(sequence, error);
  }

  /** Whether sequences wait for the disk; `onReady` is called when they have what it has. */
  get isFetching(): boolean {
    return this.#fetching.size > 0;
  }

  /** Ends a sequence with `abort`, at the latest when the step under way has ended. Unknown and finished ids are ignored. */
  abort(id: string): void {
    this.#endBetweenSteps(id, 'abort');
  }

  /** Ends a sequence with `stop`, after the step under way, without further tokens: its shown text is complete. */
  stop(id: string): void {
    this.#endBetweenSteps(id, 'stop');
  }

  /** From the next step on it is of another class. Unknown and finished ids are ignored. */
  prioritise(id: string, priority: Priority): void {
    this.#betweenSteps(() => {
      const sequence = this.#sequences.get(id);
      if (!sequence) return;
      this.#scheduler.prioritise(sequence, priority);
      if (sequence.numGenerated > 0) return;
      // Before its first token nobody has waited for it until now; one that runs already does not wait.
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
      if ((includeIdle || sequence.priority !== 'idle') && !this.#fetching.has(sequence)) return true;
    return false;
  }

  /** ms that the next step should wait, for requests that are about to arrive; 0 most of the time. Ask again after an arrival. */
  pauseMs(): number {
    return this.#planner.pauseMs(this.#sequences.values(), (sequence) => this.#scheduler.missing(sequence));
  }

  /** One step: schedule, run, sample, emit. Nothing to do is no error. Must not be called again before it has settled. */
  async step(): Promise<void> {
    if (this.#maintenanceWork) await this.#maintenanceWork;
    if (this.#stepping) throw new Error('A step is under way.');
    this.#stepping = true;
    try {
      const start = this.#clock();
      const budget = this.#planner.budget(this.#sequences.values(), this.#scheduler.backlog());
      const { batch, ended } = this.#scheduler.schedule(budget, start);
      const scheduled = this.#clock();
      for (const { sequence, outcome } of ended) this.#end(sequence, outcome);
      if (batch.length > 0) {
        const logits = await this.#run(batch);
        const run = this.#clock();
        const prefill = batch.find(({ lane }) => lane === 'prefill') ?? null;
        const numTokens = numTokensOf(batch);
        this.#planner.learn(
          numTokens - (prefill?.count ?? 0),
          this.#runner.paidColumns,
          prefill && { count: prefill.count, startIndex: prefill.startIndex - prefill.lease.numPruned },
          run - scheduled - (this.#runner.copyMs ?? 0),
        );
        if (batch.every(({ prefill }) => !prefill))
          this.#speculation?.observe(numTokens, run - scheduled, budget.columnMs(this.#runner.paidColumns));
        const entry = this.#journal.begin(batch);
        const asking = batch.find(({ numQueries }) => numQueries > 0);
        if (asking) this.#scheduler.saw(asking, this.#runner.queries!);
        const numGenerated = this.#emission.emit(batch, logits, this.#runner.vocabSize, this.#clock());
        entry.finish(numGenerated, { start, scheduled, run, end: this.#clock() });
      } else if (ended.length === 0 && this.hasWork()) throw new Error('The scheduler makes no progress.');
    } finally {
      this.#stepping = false;
    }
    this.#endStep();
  }

  /** What the budget is for: bytes of pool, store, scratch, the disk tier's buffers, the codecs' kernels and what is measured in idle maintenance, as they are now. */
  get cacheBytes(): number {
    return this.#cache.poolBytes + this.#cache.storeBytes + (this.#runner.scratchBytes ?? 0) + this.#allBufferBytes;
  }

  /** Changes the budget of all of it. Sequences that no longer fit are preempted. `mostBytes` and `usesDisk`: see EngineOptions; with other settings only. */
  setMaxBytes(
    maxBytes: number,
    { mostBytes = this.#mostBytes, usesDisk = this.#usesDisk }: Pick<EngineOptions, 'mostBytes' | 'usesDisk'> = {},
  ): void {
    this.#betweenSteps(() => {
      this.#mostBytes = mostBytes;
      this.#usesDisk = usesDisk;
      const forCache = this.#divide(maxBytes);
      this.#scheduler.setMaxBytes(forCache, this.#mostPrefill);
      this.#cache.sparse.room.prefillTokens = this.#mostPrefill;
      this.#cache.displayedLimitBytes = maxBytes;
      // It may be larger than its new share; what is still needed of it is taken from the pool again.
      this.#runner.releaseScratch?.();
    });
  }

  /** Evicts the runs of a prefix last, also those computed later, until the key's prefix is replaced or null. */
  pin(key: string, tokenIds: readonly number[] | null): void {
    this.#betweenSteps(() => this.#cache.pin(key, tokenIds && this.#blockIds(tokenIds)));
  }

  /**
   * For idle maintenance, a little of what can wait: writes blocks of files to the disk, compresses what is long out of use or lets
   * rows of it go, takes it out of the pool a page at a time and gives the page back. False when there is nothing to do, or
   * `mustEnd`. Nothing of `secret` blocks is written. `sparing`, on battery: memory is given back, and
   * nothing else done. Requests may come meanwhile; not to be called again before it has settled.
   */
  async runMaintenance(
    blocks: readonly FileTokens[],
    {
      secret = [],
      mustEnd = () => false,
      sparing = false,
    }: { secret?: readonly FileTokens[]; mustEnd?: () => boolean; sparing?: boolean } = {},
  ): Promise<boolean> {
    if (sparing && !this.#stepping) this.#pruning?.drop();
    if (sparing) return !this.#stepping && !this.hasWork() && this.#cache.shrink(false);
    // What is not exact any more is not written.
    if (await this.save(blocks, QUIET_MS)) return true;
    if (this.#stepping || this.hasWork() || mustEnd()) return false;
    if (this.#cache.runs.compress()) return true;
    // What is to be measured stays in the pool until it has been: there its rows are looked at.
    if (await this.#prune([...blocks, ...secret], mustEnd)) return true;
    return !this.#stepping && !this.hasWork() && !mustEnd() && this.#cache.shrink();
  }

  async #prune(blocks: readonly FileTokens[], mustEnd: () => boolean): Promise<boolean> {
    if (!this.#pruning) return false;
    this.#stepping = true;
    const isOver = (): boolean => this.hasWork() || this.#afterStep.length > 0 || mustEnd();
    const work = this.#pruning.step(this.#contexts(blocks), isOver);
    this.#maintenanceWork = work.catch(() => {});
    try {
      return await work;
    } finally {
      this.#maintenanceWork = null;
      this.#stepping = false;
      this.#endStep();
    }
  }

  /** Writes a segment of these blocks to the disk, of what has not been used for so long; false when there is nothing to write. */
  async save(blocks: readonly FileTokens[], quietMs = 0): Promise<boolean> {
    return (await this.#snapshots?.save(blocks, (tokenIds) => this.#blockIds(tokenIds), quietMs)) ?? false;
  }

  /** Removes from the disk what is there of files with this path, or everything but of files with the `kept` paths, of all models. */
  async forgetDisk(path?: string, kept: readonly string[] = []): Promise<void> {
    await this.#disk?.forget(path, kept);
  }

  /** Drops what no sequence uses: everything, but for what is `pinned`, or what begins with a prefix and goes on, pinned or not. */
  evict(prefix: readonly number[] = [], { pinned = prefix.length > 0 } = {}): void {
    this.#betweenSteps(() => {
      for (const ids of this.#everyBlockIds(prefix)) this.#cache.evict(ids, pinned);
    });
  }

  /** What is cached of a prefix: a file block, or a prompt with its tokens for the prefill lane. `diskTokens`: behind what memory has of it. */
  describe(
    tokenIds: readonly number[],
    prefill: readonly TokenRange[] = [[0, tokenIds.length]],
  ): ReturnType<KvCache['describe']> & { shiftedTokens: number; diskTokens: number } {
    const ids = laneIds(tokenIds, clipped(prefill, this.#laneLimit(tokenIds.length)));
    const found = this.#cache.describe(ids);
    const diskTokens = this.#snapshots?.missing(ids, ids.length, found.tokens) ?? 0;
    return {
      ...found,
      tier: found.tokens < diskTokens ? 'disk' : found.tier,
      codecs: found.codecs.length > 0 ? found.codecs : [this.#pool.shape.kv],
      shiftedTokens: this.#shifted ? this.#cache.shifted.standingIn(ids) : 0,
      diskTokens,
    };
  }

  /** Lets go of what stood in for tokens of this block that have been computed since. */
  dropShifted(tokenIds: readonly number[]): void {
    if (this.#shifted) this.#betweenSteps(() => this.#cache.shifted.drop(this.#blockIds(tokenIds)));
  }

  /** The prefix tree for the monitor, with the files' blocks named. */
  outline(blocks: readonly Block[]): TreeNode[] {
    return this.#cache.outline(blocks.map((block) => ({ ...block, tokenIds: this.#blockIds(block.tokenIds) })));
  }

  /** The last steps, oldest first. */
  trace(): TracedStep[] {
    return this.#journal.trace();
  }

  /** Ends all sequences with `onError`. After a failed step the engine must not be used any more. */
  failAll(error: RequestError): void {
    this.close();
    for (const sequence of [...this.#sequences.values()]) this.#end(sequence, error);
    this.#afterStep = [];
    this.#ending.clear();
  }

  /** Pool and runner are another engine's from now on: nothing more comes from the disk. */
  close(): void {
    this.#disk?.close();
  }

  stats(): CoreStats {
    const journal = this.#journal.stats(this.#clock());
    return {
      ...journal,
      // Who reads from the disk waits, too.
      requests: {
        ...journal.requests,
        waiting: journal.requests.waiting + [...this.#fetching].filter(({ priority }) => priority !== 'idle').length,
      },
      tokens: {
        ...journal.tokens,
        promptShifted: this.#shifted?.numTokens ?? 0,
        promptFromDisk: this.#disk?.numFetched ?? 0,
      },
      maxBytes: this.#maxBytes,
      poolBytes: this.#cache.poolBytes,
      storeBytes: this.#cache.storeBytes,
      scratchBytes: this.#runner.scratchBytes ?? 0,
      bufferBytes: this.#allBufferBytes,
      diskBytes: this.#disk?.disk.bytes ?? 0,
      diskMaxBytes: this.#disk?.disk.maxBytes ?? 0,
      ...(this.#snapshots?.fault ? { diskFault: this.#snapshots.fault } : {}),
      kvBytesPerToken: kvBytesPerToken(this.#pool.shape),
      poolSlots: this.#cache.poolSlots,
    };
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

  /** Whether the disk has what memory has not of a prompt: all but its last token, whose logits are wanted. */
  #isOnDisk({ cacheIds, numPromptTokens }: Sequence): boolean {
    return (
      this.#snapshots !== null &&
      this.#snapshots.missing(
        cacheIds,
        numPromptTokens - 1,
        this.#cache.lookUp(cacheIds, numPromptTokens - 1).numTokens,
      ) > 0
    );
  }

  /** Into the queue once its prompt has been read. What cannot be read is computed, and so is the rest where the budget has no room for reading any more. */
  async #fetch(sequence: Sequence, arrivedAt: number): Promise<void> {
    this.#fetching.add(sequence);
    await this.#disk!.fetch(
      sequence.cacheIds,
      sequence.numPromptTokens - 1,
      (action) => this.#betweenSteps(action),
      () => this.#usesDisk && this.#fetching.has(sequence),
    );
    this.#betweenSteps(() => {
      // It may have been aborted.
      if (!this.#fetching.delete(sequence)) return;
      this.#scheduler.add(sequence, arrivedAt);
      this.#onReady();
    });
  }

  #end(sequence: Sequence, outcome: FinishReason | RequestError): void {
    this.#fetching.delete(sequence);
    this.#scheduler.remove(sequence);
    this.#sequences.delete(sequence.id);
    this.#journal.ended(sequence, outcome, this.#clock());
    if (outcome instanceof RequestError) sequence.fail(outcome);
    else sequence.finish(outcome);
  }

  #refusal(sequence: Sequence): RequestError | null {
    const { numPromptTokens, tokenIds } = sequence;
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
    const unknown = tokenIds.find((id) => !Number.isInteger(id) || id < 0 || id >= this.#runner.vocabSize);
    return unknown === undefined
      ? null
      : new RequestError('badRequest', `Token id ${unknown} is not in the vocabulary of ${this.#runner.vocabSize}.`);
  }

  get #snapshots(): Snapshots | null {
    return this.#usesDisk ? this.#disk : null;
  }

  /** What counts beside rows, as it is now. */
  get #allBufferBytes(): number {
    return this.#bufferBytes + kernelBytes() + this.#cache.borrowedBytes;
  }

  get #bufferBytes(): number {
    return this.#usesDisk ? this.#mostBufferBytes : 0;
  }

  /** A file block, or the beginning of one, as the cache knows it. */
  #blockIds(tokenIds: readonly number[]): number[] {
    return laneIds(tokenIds, [[0, this.#laneLimit(tokenIds.length)]]);
  }

  /** The same, by each lane limit that it may have been computed under. */
  #everyBlockIds(tokenIds: readonly number[]): number[][] {
    const limits = new Set([
      ...laneLimits(tokenIds.length),
      Math.min(tokenIds.length, this.#laneLimit(tokenIds.length)),
    ]);
    return Array.from(limits, (limit) => laneIds(tokenIds, [[0, limit]]));
  }

  /** Tokens of a context for which the prefill lane has room: where only parts of it are attended to, all. */
  #laneLimit(numTokens: number): number {
    const { capacity, sparse } = this.#cache;
    return numTokens > capacity && sparse.room.slotsFor(numTokens) <= this.#mostPrefill ? numTokens : this.#mostPrefill;
  }

  #contexts(blocks: readonly FileTokens[]): Context[] {
    return blocks.map(({ tokenIds }) => ({ of: tokenIds, ids: this.#blockIds(tokenIds) }));
  }

  /** Sets aside what scratch, buffers and kernels take of the budget at most; returns what is for pool and store. */
  #divide(maxBytes: number): number {
    this.#maxBytes = maxBytes;
    const { prefillTokens, rowBytes } = this.#dividedBy(maxBytes, this.#prefillBytesPerToken);
    this.#mostPrefill = prefillTokens;
    this.#runner.separatesShort = separatesShort(prefillTokens);
    // Models that were measured before may have needed more of the thread's kernels.
    return rowBytes - this.#bufferBytes - Math.max(this.#mostKernelBytes, kernelBytes());
  }

  #dividedBy(maxBytes: number, perToken: number): DividedBudget {
    if (perToken === 0) return { prefillTokens: 0, rowBytes: maxBytes };
    const prefillTokens = this.#givenPrefill;
    if (prefillTokens === undefined) return divideBudget(maxBytes, perToken, this.#maxContext, this.#mostBytes);
    return { prefillTokens, rowBytes: maxBytes - scratchRows(prefillTokens) * perToken };
  }

  #endStep(): void {
    for (const action of this.#afterStep.splice(0)) action();
  }

  #endBetweenSteps(id: string, reason: FinishReason): void {
    this.#ending.add(id);
    this.#betweenSteps(() => {
      this.#ending.delete(id);
      const sequence = this.#sequences.get(id);
      if (sequence) this.#end(sequence, reason);
    });
  }

  #betweenSteps(action: () => void): void {
    if (this.#stepping) this.#afterStep.push(action);
    else action();
  }
}
