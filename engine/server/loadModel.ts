/**
 * Loads a model folder: import, text side, session, calibration and disk tier. Does not own the result (see
 * loadedModel.ts).
 */
import { kvBytesPerToken } from '../kv/kvRows.ts';
import { KvPool } from '../kv/pool.ts';
import { DiskTier } from '../kv/disk/diskTier.ts';
import { notWritable } from '../kv/snapshots.ts';
import { nativeFault } from '../model/native/selfTest.ts';
import { laneCrossover } from '../model/calibrate/laneCrossover.ts';
import { openRunner } from '../model/calibrate/threadChoice.ts';
import { importModel } from '../model/import/importModel.ts';
import { type ImportedModel, kvShape, usualKv } from '../model/load/importedModel.ts';
import type { Runner } from '../model/batch.ts';
import { reasonOf, RequestError } from '../protocol/errors.ts';
import type { LoadOptions } from '../protocol/messages.ts';
import { oneLine } from '../protocol/oneLine.ts';
import type { ModelInfo } from '../protocol/stats.ts';
import { type Faults, withoutFaulty } from '../text/format/faults.ts';
import { ModelText, selfTest } from '../text/format/modelText.ts';
import { Layout } from '../text/prompt/layout.ts';
import { chooseApproximations } from './approximationChoice.ts';
import { LiveEngines } from './liveEngines.ts';
import { LoadedModel, type LoadHooks, type OpenedDisk } from './loadedModel.ts';
import { reservedForReasoning } from '../tasks/reasoning.ts';

export type LoadProgress = (stage: 'import' | 'session', fraction: number) => void;

/** Log line for a processor without exact products. None is known. */
const NOT_EXACT =
  'On this processor the last bits of a product with block-quantised weights depend on its number of rows, ' +
  'so a text computed together with others may differ from the same text computed alone.';

/** @throws RequestError `modelInvalid` or `modelUnsupported`, with file and field in one sentence */
export async function loadModel(
  options: LoadOptions,
  progress: LoadProgress = () => {},
  hooks: LoadHooks = { onReady: () => {}, log: () => {} },
): Promise<LoadedModel> {
  const started = performance.now();
  const kv = options.kv ?? usualKv(options.precision);
  // The kernels have no float32 rows and weights.
  const mayBeNative = options.native !== false && kv === 'int8' && options.precision !== 'float32';
  const fault = mayBeNative ? await nativeFault() : null;
  if (fault !== null) hooks.log(`The native kernels cannot be used, onnxruntime computes instead: ${oneLine(fault)}`);
  // Opened while the model is imported, because a full folder has thousands of files.
  const opening = options.disk && kv === 'int8' ? openDisk(options.disk, hooks.log) : NO_DISK;
  // Read while the model is imported, but errors of the weights are reported first.
  const reading = ModelText.load(options.modelDir);
  reading.catch(() => undefined);
  const withFolder = addFolder(options.modelDir);
  const imported = await importModel({
    modelDir: options.modelDir,
    cacheDir: options.cacheDir,
    precision: options.precision,
    ...(mayBeNative && fault === null ? { products: 'native' } : {}),
    onProgress: (fraction) => progress('import', fraction),
  }).catch(withFolder);
  const text = await reading.catch(withFolder);
  switchOff(text, selfTest(text, imported.config.vocabSize));
  const contextTokens = Math.min(imported.config.contextTokens, options.contextTokens ?? Number.POSITIVE_INFINITY);
  progress('session', 0);
  const pool = new KvPool(kvShape(imported.config, kv, imported.biased), 0);
  const runner = await openRunner(imported, pool, { threads: options.threads });
  let live: LiveEngines | null = null;
  try {
    if (!runner.isExact) hooks.log(NOT_EXACT);
    const onProgress = (fraction: number): void => progress('session', fraction);
    const { parameters } = imported;
    const minPrefill = await laneCrossover(imported.dir, runner, { parameters, contextTokens }, onProgress);
    const { approximations, info } = await chooseApproximations(options, {
      imported,
      runner,
      text,
      contextTokens,
      onProgress,
      log: hooks.log,
    });
    progress('session', 1);
    const disk = await opening;
    let model: LoadedModel | null = null;
    if (options.enginesDir !== undefined)
      live = await LiveEngines.join(options.enginesDir, () => model?.follow(), hooks.log);
    model = new LoadedModel({
      info: {
        ...infoOf(text, imported, runner),
        precision: options.precision,
        kv,
        contextTokens,
        loadMs: performance.now() - started,
        ...info,
      },
      text,
      layout: new Layout(text, { contextTokens, numParameters: parameters, fewestPrefill: minPrefill }),
      options,
      imported,
      runner,
      disk,
      live,
      approximations,
      hooks,
    });
    return model;
  } catch (error) {
    // The load was cancelled or failed. The weights must not stay in memory with those of the next model.
    await live?.leave();
    await runner.dispose();
    throw error;
  }
}

type FixedInfo = Omit<ModelInfo, 'precision' | 'kv' | 'contextTokens' | 'loadMs'>;

function infoOf(text: ModelText, imported: ImportedModel, runner: Runner): FixedInfo {
  const { manifest } = text;
  const { can, completion } = manifest;
  const reasoningTokens = can.chat ? reservedForReasoning(text) : 0;
  return {
    name: manifest.name,
    architecture: imported.config.architecture,
    parameters: imported.parameters,
    vocabSize: imported.config.vocabSize,
    weightsBytes: imported.weightsBytes,
    residentBytes: imported.residentBytes,
    kvBytesPerToken: kvBytesPerToken(runner.pool.shape),
    threads: runner.threads,
    ...(runner.kernels === undefined ? {} : { kernels: runner.kernels }),
    imported: imported.imported,
    canComplete: can.complete,
    canChat: can.chat,
    canEdit: can.edit,
    readsSnippets: completion.snippets,
    copiesFiles: completion.copy.share > 0 && completion.copy.others > 0,
    note: manifest.note,
    chatNote: manifest.chat.note,
    ...(reasoningTokens > 0 ? { reasoningTokens } : {}),
  };
}

/** Adds the folder to an error about a file of a model, because there may be several models. */
function addFolder(modelDir: string): (error: unknown) => never {
  return (error) => {
    if (
      !(error instanceof RequestError) ||
      (error.code !== 'modelInvalid' && error.code !== 'modelUnsupported') ||
      error.message.includes(oneLine(modelDir))
    )
      throw error;
    throw new RequestError(error.code, `${modelDir}: ${error.message}`);
  };
}

const NO_DISK: OpenedDisk = { tier: null, fault: null };

/** Opens the disk tier. Logs a line if the folder cannot be used. */
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

/**
 * Switches off the tasks whose self-test failed, because their answers would be garbage. The note of the model says
 * why. A chat template that cannot be run is dropped: no prompt may use it.
 * @throws RequestError if no task is left
 */
export function switchOff(text: ModelText, faults: Faults): void {
  const left = withoutFaulty(text.manifest, faults);
  if (left !== text.manifest) text.faults = faults;
  text.manifest = left;
  if (faults.chat !== undefined && text.chatTemplate?.fault !== undefined) text.chatTemplate = undefined;
}
