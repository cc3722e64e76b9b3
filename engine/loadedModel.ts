/** A model folder made ready: imported files, text side, session, window and engine; rebuilt after a bug, freed at the end. */
import { KvWindow, kvBytesPerToken } from './cache/window.ts';
import { Engine } from './engine.ts';
import { automaticCacheBytes } from './memory.ts';
import { importModel, kvShape } from './model/importModel.ts';
import { OnnxRunner } from './model/runner.ts';
import type { LoadOptions, ModelInfo } from './protocol.ts';
import { Layout } from './text/layout.ts';
import { ModelText } from './text/modelText.ts';

export interface LoadedModel {
  readonly info: ModelInfo;
  readonly text: ModelText;
  readonly layout: Layout;
  /** Replaced by `rebuild`. */
  readonly engine: Engine;
  /** Changes the ceiling of window + store, in bytes; 0 is automatic. Outlives `rebuild`. */
  setMaxBytes(maxBytes: number): void;
  /** A new engine over the same session and an empty cache. Pending sequences must have been told before. */
  rebuild(): void;
  /** Not during a step. */
  dispose(): Promise<void>;
}

export type LoadProgress = (stage: 'import' | 'session', fraction: number) => void;

/** @throws RequestError `modelInvalid` or `modelUnsupported`: one sentence that names file and field. */
export async function loadModel(options: LoadOptions, progress: LoadProgress = () => {}): Promise<LoadedModel> {
  const started = performance.now();
  const kv = options.kv ?? options.precision;
  // At the same time, but what is wrong with the model itself is said before what is wrong with its texts.
  const reading = ModelText.load(options.modelDir);
  reading.catch(() => undefined);
  const imported = await importModel({ modelDir: options.modelDir, cacheDir: options.cacheDir, precision: options.precision, onProgress: (fraction) => progress('import', fraction) });
  const text = await reading;
  const contextTokens = Math.min(imported.config.contextTokens, options.contextTokens ?? Number.POSITIVE_INFINITY);
  const shape = kvShape(imported.config, kv);
  progress('session', 0);
  const window = new KvWindow(shape, 0);
  const runner = await OnnxRunner.create(imported, window, { threads: options.threads });
  progress('session', 1);
  // After the weights are in memory: they are not available any more.
  let maxBytes = options.maxBytes || automaticCacheBytes();
  const makeEngine = () => new Engine({ runner, window, maxBytes, maxContext: contextTokens });
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
      kvBytesPerToken: kvBytesPerToken(shape),
      loadMs: performance.now() - started,
      imported: imported.imported,
      canComplete: text.manifest.can.complete,
      canChat: text.manifest.can.chat,
      canEdit: text.manifest.can.edit,
      note: text.manifest.note,
    },
    text,
    layout: new Layout(text, { contextTokens, numParameters: imported.parameters }),
    engine: makeEngine(),
    setMaxBytes(bytes: number) {
      maxBytes = bytes || automaticCacheBytes();
      model.engine.setMaxBytes(maxBytes);
    },
    rebuild() {
      model.engine = makeEngine();
    },
    dispose: () => runner.dispose(),
  };
  return model;
}
