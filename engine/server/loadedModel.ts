/**
 * A loaded model with its engine: follows the free memory of the machine, rebuilds the engine after a bug, and frees
 * everything at the end. Does not load (see loadModel.ts).
 */
import { t } from '@vscode/l10n';
import { Engine } from '../core/engine.ts';
import { MemoryBudget, type MemoryReading, memoryReading } from '../core/memoryBudget.ts';
import type { ApproximationOptions } from '../kv/approx/approximations.ts';
import { type SnapshotOptions, Snapshots } from '../kv/snapshots.ts';
import { codecNamed } from '../kv/approx/codecs/registry.ts';
import type { DiskTier } from '../kv/disk/diskTier.ts';
import { SpillFile } from '../kv/disk/spillFile.ts';
import type { Needs } from '../scheduler/capacityErrors.ts';
import type { ImportedModel } from '../model/load/importedModel.ts';
import type { Runner } from '../model/batch.ts';
import { formatBytes } from '../protocol/formatBytes.ts';
import type { LoadOptions } from '../protocol/messages.ts';
import type { ModelInfo } from '../protocol/stats.ts';
import { StepCost, TYPICAL_PREFILL } from '../scheduler/stepCost.ts';
import type { ModelText } from '../text/format/modelText.ts';
import type { Layout } from '../text/prompt/layout.ts';
import { needsOf } from './cacheReach.ts';
import type { LiveEngines } from './liveEngines.ts';

/** Least time between two readings of the free memory. */
const MIN_LOOK_MS = 3000;

export interface LoadHooks {
  /** The engine has new work although nothing was added. */
  readonly onReady: () => void;
  /** Logs a problem that loses no data. */
  readonly log: (line: string) => void;
}

export interface OpenedDisk {
  /** Null if the cache is in memory only. */
  readonly tier: DiskTier | null;
  /** Why there is no tier although it was asked for, in the user's language. */
  readonly fault: string | null;
}

export interface ModelParts {
  readonly info: ModelInfo;
  readonly text: ModelText;
  readonly layout: Layout;
  readonly options: LoadOptions;
  readonly imported: ImportedModel;
  readonly runner: Runner;
  readonly disk: OpenedDisk;
  /** The engines that share the memory budget. Null if this engine does not share it. */
  readonly live: LiveEngines | null;
  readonly approximations: ApproximationOptions;
  readonly hooks: LoadHooks;
}

export class LoadedModel {
  readonly info: ModelInfo;
  readonly text: ModelText;
  readonly layout: Layout;
  readonly #parts: ModelParts;
  readonly #budget: MemoryBudget;
  readonly #snapshots: SnapshotOptions | null;
  /** Learnt step times, which `rebuild` keeps. */
  readonly #stepCosts = { pool: new StepCost(), prefill: new StepCost(TYPICAL_PREFILL) };
  #lookedAt = performance.now();
  #spillFile: SpillFile | null = null;
  #needs: Needs | null = null;
  #engine: Engine;

  /** The weights must be in memory, so that their memory does not count as available. */
  constructor(parts: ModelParts) {
    const { info, text, layout, options, imported, runner, disk, hooks } = parts;
    this.info = info;
    this.text = text;
    this.layout = layout;
    this.#parts = parts;
    this.#budget = new MemoryBudget(options.maxBytes, this.#reading(0), performance.now());
    this.#snapshots = disk.tier && {
      disk: disk.tier,
      codec: codecNamed('int8', runner.pool.shape, null),
      modelKey: imported.key,
      log: hooks.log,
    };
    this.#logTooSmall(false);
    this.#engine = this.#createEngine();
  }

  /** `rebuild` replaces it. */
  get engine(): Engine {
    return this.#engine;
  }

  /** Engines that share the memory budget, this one included. */
  get numEngines(): number {
    return this.#parts.live?.num ?? 1;
  }

  /**
   * Why nothing is kept on disk although it was asked for, in the user's language. Null if there is no such problem.
   */
  get diskFault(): string | null {
    if (this.#parts.disk.fault !== null) return this.#parts.disk.fault;
    if (!this.#isBudgetTooSmall) return null;
    return t('the KV cache limit of {0} is too small for disk buffers', formatBytes(this.#budget.budget));
  }

  /** Changes the memory budget. `rebuild` keeps it. */
  setBudget(maxBytes: number): void {
    const wasTooSmall = this.#isBudgetTooSmall;
    this.#budget.configure(maxBytes, this.#reading(this.engine.cacheBytes), performance.now());
    this.#logTooSmall(wasTooSmall);
    const { budget, most } = this.#budget;
    this.engine.setMaxBytes(budget, { mostBytes: most, usesDisk: this.#usesDisk });
  }

  /** Adapts the memory budget to the free memory, at most every MIN_LOOK_MS. Called when the engine is used. */
  followMemory(): void {
    if (performance.now() - this.#lookedAt >= MIN_LOOK_MS) this.follow();
  }

  /** Adapts the memory budget at once. */
  follow(): void {
    this.#lookedAt = performance.now();
    const wasTooSmall = this.#isBudgetTooSmall;
    if (!this.#budget.follow(this.#reading(this.engine.cacheBytes), this.#lookedAt)) return;
    this.#logTooSmall(wasTooSmall);
    this.engine.setMaxBytes(this.#budget.budget, { usesDisk: this.#usesDisk });
  }

  /** Replaces the engine by one with an empty cache. All requests must have ended. */
  rebuild(): void {
    this.engine.close();
    this.#engine = this.#createEngine();
  }

  /** Frees everything. Must not be called during a step. */
  async dispose(): Promise<void> {
    this.#spillFile?.close();
    await this.#parts.live?.leave();
    await this.#parts.runner.dispose();
  }

  #reading(usedBytes: number): MemoryReading {
    return { ...memoryReading(usedBytes), numEngines: this.numEngines };
  }

  /** Whether the budget is large enough for disk buffers. */
  get #usesDisk(): boolean {
    return Snapshots.fitUnder(this.#budget.budget, this.#parts.runner.pool.shape);
  }

  get #isBudgetTooSmall(): boolean {
    return this.#snapshots !== null && !this.#usesDisk;
  }

  #logTooSmall(wasTooSmall: boolean): void {
    if (!wasTooSmall && this.#isBudgetTooSmall)
      this.#parts.hooks.log(
        `The budget of the KV cache (${formatBytes(this.#budget.budget)}) is too small for disk buffers: ` +
          'nothing is kept on disk.',
      );
  }

  #createEngine(): Engine {
    const { options, runner, disk, approximations, hooks, info } = this.#parts;
    this.#spillFile?.close();
    if (options.disk && disk.tier) this.#spillFile = new SpillFile(options.disk.dir, options.disk.maxBytes, hooks.log);
    return new Engine({
      runner,
      stepCosts: this.#stepCosts,
      pool: runner.pool,
      maxBytes: this.#budget.budget,
      mostBytes: this.#budget.most,
      numEditorWindows: () => this.numEngines,
      // float32 rows are never read in parts, so there are no needs to report.
      ...(info.kv === 'int8' ? { needs: () => (this.#needs ??= this.#memoryNeeds()) } : {}),
      maxContext: info.contextTokens,
      prefillBytesPerToken: runner.prefillBytesPerToken,
      ...approximations,
      snapshots: this.#snapshots,
      usesDisk: this.#usesDisk,
      spillFile: this.#spillFile,
      onReady: hooks.onReady,
    });
  }

  #memoryNeeds(): Needs {
    const { imported, info, options, disk, runner } = this.#parts;
    const diskBytes = disk.tier ? (options.disk?.maxBytes ?? 0) : 0;
    const needs = needsOf(imported.config, info.contextTokens, diskBytes, runner.hasOneLane);
    // If the disk failed, no setting allows reading in parts.
    return disk.fault === null ? needs : { ...needs, inParts: needs.whole };
  }
}
