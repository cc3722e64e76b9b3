/** A model folder made ready: imported files, text side, session, pool and engine; rebuilt after a bug, freed at the end. */
import { t } from '@vscode/l10n';
import { codecNamed } from '../kv/approx/codecs/registry.ts';
import { DiskTier } from '../kv/disk/diskTier.ts';
import { SpillFile } from '../kv/disk/spillFile.ts';
import type { Needs } from '../kv/kvCache.ts';
import { kvBytesPerToken } from '../kv/kvRows.ts';
import { KvPool } from '../kv/pool.ts';
import { needsOf } from './cacheReach.ts';
import { Engine } from '../core/engine.ts';
import { RequestError, reasonOf } from '../protocol/errors.ts';
import { formatBytes } from '../protocol/formatBytes.ts';
import { LiveEngines } from './liveEngines.ts';
import { memoryReading } from '../core/memoryBudget.ts';
import { type BudgetChange, MemoryBudget, type MemoryReading, USUAL_SHARE } from '../core/memoryBudget.ts';
import { importModel } from '../model/import/importModel.ts';
import { kvShape, usualKv } from '../model/load/importedModel.ts';
import { laneCrossover } from '../model/calibrate/laneCrossover.ts';
import { RopeTable } from '../model/runtime/rope.ts';
import { openRunner } from '../model/calibrate/threadChoice.ts';
import { shiftQuality } from '../model/calibrate/shiftQuality.ts';
import { modelCompression } from './codecChoice.ts';
import { StepCost, TYPICAL_PREFILL } from '../scheduler/stepCost.ts';
import type { LoadOptions } from '../protocol/messages.ts';
import type { ModelInfo } from '../protocol/stats.ts';
import { notWritable, Snapshots } from '../kv/disk/snapshots.ts';
import { Layout } from '../text/prompt/layout.ts';
import { type Faults, ModelText } from '../text/format/modelText.ts';
import { selfTest } from '../text/format/selfTest.ts';

/** Rows go of what nobody has used for so long: later than the disk tier writes it. */
const PRUNED_MS = 2 * 60_000;

export interface LoadedModel {
  readonly info: ModelInfo;
  readonly text: ModelText;
  readonly layout: Layout;
  /** Replaced by `rebuild`. */
  readonly engine: Engine;
  /** Among which the budget is divided, this one included. */
  readonly numEngines: number;
  /** Why nothing is kept on the disk from the start, in the user's language; null where it is, or is not to be. */
  readonly diskFault: string | null;
  /** Other settings for the cache's budget (see MemoryBudget); outlives `rebuild`. */
  setBudget(options: BudgetChange): void;
  /** For whenever there is something to do: looks now and then how much memory there is, and moves the budget after it. */
  followMemory(): void;
  /** A new engine over the same session and an empty cache. Pending sequences must have been told before. */
  rebuild(): void;
  /** Not during a step. */
  dispose(): Promise<void>;
}

/** Memory is looked at this often at most, ms. */
const LOOK_MS = 3000;

export type LoadProgress = (stage: 'import' | 'session', fraction: number) => void;

export interface LoadHooks {
  /** The engine has work that it had not when it was last asked. */
  readonly onReady: () => void;
  /** Something is not as it should be, and nothing is lost by it. */
  readonly log: (line: string) => void;
}

/** No processor is known where that is so. */
const NOT_EXACT =
  'On this processor the last bits of a product with weights in blocks depend on how many rows it has, so a text that is computed with others may differ from the same one alone.';

/** @throws RequestError `modelInvalid` or `modelUnsupported`: one sentence that names file and field. */
export async function loadModel(
  options: LoadOptions,
  progress: LoadProgress = () => {},
  hooks: LoadHooks = { onReady: () => {}, log: () => {} },
): Promise<LoadedModel> {
  const started = performance.now();
  const kv = options.kv ?? usualKv(options.precision);
  // Meanwhile: a full folder has thousands of files.
  const opening = options.disk && kv === 'int8' ? openDisk(options.disk, hooks.log) : NO_DISK;
  // At the same time, but what is wrong with the model itself is said before what is wrong with its texts.
  const reading = ModelText.load(options.modelDir);
  reading.catch(() => undefined);
  const located = saysWhere(options.modelDir);
  const imported = await importModel({
    modelDir: options.modelDir,
    cacheDir: options.cacheDir,
    precision: options.precision,
    onProgress: (fraction) => progress('import', fraction),
  }).catch(located);
  const text = await reading.catch(located);
  switchOff(text, selfTest(text, imported.config.vocabSize));
  const contextTokens = Math.min(imported.config.contextTokens, options.contextTokens ?? Number.POSITIVE_INFINITY);
  const shape = kvShape(imported.config, kv, imported.biased);
  progress('session', 0);
  const pool = new KvPool(shape, 0);
  const runner = await openRunner(imported, pool, { threads: options.threads });
  let live: LiveEngines | null = null;
  try {
    if (!runner.isExact) hooks.log(NOT_EXACT);
    const fewestPrefill = await laneCrossover(
      imported.dir,
      runner,
      { parameters: imported.parameters, contextTokens },
      (fraction) => progress('session', fraction),
    );
    const encode = (source: string): number[] => text.tokenizer.encode(source);
    const shifted =
      options.reuseShifted && kv === 'int8'
        ? await shiftQuality(imported, runner, encode, contextTokens, (fraction) => progress('session', fraction))
        : null;
    const reuseShifted = shifted !== null && shifted.klMean <= shifted.bound;
    const rope = new RopeTable(imported.config.rope, imported.config.headSize);
    const { turn } = text;
    const compressed =
      options.compress && kv === 'int8'
        ? await modelCompression(options.compress, {
            imported,
            runner,
            rope,
            encode,
            turn,
            contextTokens,
            onProgress: (fraction) => progress('session', fraction),
            log: hooks.log,
          })
        : null;
    const compression = compressed?.compression ?? null;
    const pruning = compressed?.prunes ? { idleMs: PRUNED_MS, turn, ...compressed.prunes } : null;
    progress('session', 1);
    const disk = await opening;
    live =
      options.enginesDir === undefined ? null : await LiveEngines.join(options.enginesDir, () => follow(), hooks.log);
    const numEngines = (): number => live?.num ?? 1;
    const reading = (usedBytes: number): MemoryReading => ({ ...memoryReading(usedBytes), numEngines: numEngines() });
    // After the weights are in memory: they are not available any more.
    const budget = new MemoryBudget({ maxBytes: options.maxBytes, share: USUAL_SHARE }, reading(0), performance.now());
    let lookedAt = performance.now();
    const follow = (): void => {
      lookedAt = performance.now();
      const before = hasNoRoom();
      if (!budget.follow(reading(model.engine.cacheBytes), lookedAt)) return;
      logNoRoom(before);
      model.engine.setMaxBytes(budget.budget, { usesDisk: usesDisk() });
    };
    const stepCosts = { pool: new StepCost(), prefill: new StepCost(TYPICAL_PREFILL) };
    const snapshots = disk.tier && {
      disk: disk.tier,
      codec: codecNamed('int8', shape, null),
      modelKey: imported.key,
      log: hooks.log,
    };
    // By this pool's part: what is read from the disk or written to it takes as much in each.
    const usesDisk = (): boolean => Snapshots.fitUnder(budget.budget, shape);
    const hasNoRoom = (): boolean => snapshots !== null && !usesDisk();
    const logNoRoom = (before: boolean): void => {
      if (!before && hasNoRoom())
        hooks.log(
          `The KV cache's limit of ${formatBytes(budget.budget)} has no room for reading and writing the disk: nothing is kept there.`,
        );
    };
    logNoRoom(false);
    const { onReady } = hooks;
    let spillFile: SpillFile | null = null;
    let needs: Needs | null = null;
    // Rows in float32 are never read in parts, nor are there figures for them.
    const figures = kv === 'int8' ? { needs: () => (needs ??= needsHere()) } : {};
    const needsHere = (): Needs => {
      const found = needsOf(imported.config, contextTokens, disk.tier ? (options.disk?.maxBytes ?? 0) : 0);
      // There is no file for parts, and no setting that would change that.
      return disk.fault === null ? found : { ...found, inParts: found.whole };
    };
    const makeEngine = () => {
      spillFile?.close();
      if (options.disk && disk.tier) spillFile = new SpillFile(options.disk.dir, options.disk.maxBytes, hooks.log);
      return new Engine({
        runner,
        stepCosts,
        pool,
        maxBytes: budget.budget,
        numEditorWindows: numEngines,
        ...figures,
        mostBytes: budget.most,
        maxContext: contextTokens,
        prefillBytesPerToken: runner.prefillBytesPerToken,
        reuseShifted,
        compression,
        pruning,
        snapshots,
        usesDisk: usesDisk(),
        spillFile,
        biased: new Set(imported.biased),
        onReady,
      });
    };
    const model = {
      info: {
        name: text.manifest.name,
        architecture: imported.config.architecture,
        parameters: imported.parameters,
        precision: options.precision,
        kv,
        contextTokens,
        vocabSize: imported.config.vocabSize,
        weightsBytes: imported.weightsBytes,
        residentBytes: imported.residentBytes,
        kvBytesPerToken: kvBytesPerToken(shape),
        threads: runner.threads,
        loadMs: performance.now() - started,
        imported: imported.imported,
        canComplete: text.manifest.can.complete,
        canChat: text.manifest.can.chat,
        canEdit: text.manifest.can.edit,
        readsSnippets: text.manifest.completion.snippets,
        copiesFiles: text.manifest.completion.copy.share > 0 && text.manifest.completion.copy.others > 0,
        note: text.manifest.note,
        chatNote: text.manifest.chat.note,
        ...(shifted ? { shifted } : {}),
        ...(compressed?.qualities.length ? { compressed: compressed.qualities } : {}),
      },
      text,
      layout: new Layout(text, { contextTokens, numParameters: imported.parameters, fewestPrefill }),
      engine: makeEngine(),
      get numEngines() {
        return numEngines();
      },
      get diskFault() {
        return (
          disk.fault ??
          (hasNoRoom()
            ? t('the KV cache limit of {0} leaves no room for disk buffers', formatBytes(budget.budget))
            : null)
        );
      },
      setBudget(change: BudgetChange) {
        const before = hasNoRoom();
        budget.configure(change, reading(model.engine.cacheBytes), performance.now());
        logNoRoom(before);
        model.engine.setMaxBytes(budget.budget, { mostBytes: budget.most, usesDisk: usesDisk() });
      },
      followMemory() {
        if (performance.now() - lookedAt >= LOOK_MS) follow();
      },
      rebuild() {
        model.engine.close();
        model.engine = makeEngine();
      },
      async dispose() {
        spillFile?.close();
        await live?.leave();
        await runner.dispose();
      },
    };
    return model;
  } catch (error) {
    // Given up, or a fault: its weights must not stay in memory beside the next model's.
    await live?.leave();
    await runner.dispose();
    throw error;
  }
}

/** What is wrong with a model's file is said with its folder: there may be many. */
function saysWhere(modelDir: string): (error: unknown) => never {
  return (error) => {
    if (
      !(error instanceof RequestError) ||
      (error.code !== 'modelInvalid' && error.code !== 'modelUnsupported') ||
      error.message.includes(modelDir)
    )
      throw error;
    throw new RequestError(error.code, `${modelDir}: ${error.message}`);
  };
}

interface OpenedDisk {
  /** null: the cache is in memory only. */
  readonly tier: DiskTier | null;
  /** Why, where it was not to be. */
  readonly fault: string | null;
}

const NO_DISK: OpenedDisk = { tier: null, fault: null };

/** A folder that cannot be used is a line in the log. */
async function openDisk(
  { dir, maxBytes }: NonNullable<LoadOptions['disk']>,
  log: LoadHooks['log'],
): Promise<OpenedDisk> {
  try {
    return { tier: await DiskTier.open(dir, maxBytes, log), fault: null };
  } catch (error) {
    log(`The cache cannot be kept in ${dir}: ${reasonOf(error)}`);
    return { tier: null, fault: notWritable(dir, error) };
  }
}

/** What would answer with garbage is not offered, and the model's note says why. @throws RequestError when nothing is left. */
export function switchOff(text: ModelText, faults: Faults): void {
  const { can, note } = text.manifest;
  const left = {
    complete: can.complete && !faults.complete,
    chat: can.chat && !faults.chat,
    summarize: can.summarize && !faults.chat,
    edit: can.edit && !faults.chat,
  };
  const found = [can.complete && faults.complete, (can.chat || can.summarize) && faults.chat].filter(
    (fault) => fault !== undefined && fault !== false,
  );
  if (!found.length) return;
  if (!left.complete && !left.chat && !left.summarize) throw new RequestError('modelInvalid', `${found.join('; ')}.`);
  text.faults = faults;
  const said = [
    can.complete && faults.complete ? `It is not used for completions (${faults.complete}).` : '',
    can.chat && faults.chat ? `It is not used for chat (${faults.chat}).` : '',
  ];
  const add = (own: string): string => [own, ...said].filter(Boolean).join(' ');
  text.manifest = { ...text.manifest, can: left, note: { en: add(note.en), pt: add(note.pt) } };
}
