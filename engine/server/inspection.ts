/**
 * What a model folder is and can do, without loading it: the weights' side (config, shapes, sizes) and the text side
 * (what its tokenizer, chat template and manifest offer) together. Neither tensors nor the tokenizer are built and no
 * template runs, so that looking through many folders costs little; what only a load can find (bad tensor values, a
 * template that belongs to another model) is said by the load.
 */
import { type ModelInspection, inspectModel } from '../model/import/inspectModel.ts';
import { cacheBytesAtWork } from '../core/memoryDivision.ts';
import { ModelFolder } from '../model/load/modelFolder.ts';
import type { InspectedModel } from '../protocol/stats.ts';
import type { Precision } from '../protocol/tasks.ts';
import { ChatTemplate } from '../text/format/chatTemplate.ts';
import { readManifest } from '../text/format/manifest.ts';
import { offersOf } from '../text/format/modelText.ts';

export interface FolderInspection extends InspectedModel {
  readonly model: Omit<ModelInspection, 'tokens'>;
}

/** @throws RequestError `modelInvalid` or `modelUnsupported`: the one reason why it cannot run, in one sentence. */
export async function inspectFolder(modelDir: string): Promise<FolderInspection> {
  const { tokens, ...model } = await inspectModel(modelDir);
  const folder = await ModelFolder.open(modelDir);
  const manifest = await readManifest(
    folder,
    offersOf((token) => tokens.has(token), await ChatTemplate.exists(folder)),
  );
  const { residentBytes, kvBytesPerToken, contextTokens } = model;
  // The rows go with the weights' form; a row of the scratch is a float32 one.
  const atWork = (precision: Precision) =>
    residentBytes[precision] +
    cacheBytesAtWork(
      kvBytesPerToken[precision === 'float32' ? 'float32' : 'int8'],
      kvBytesPerToken.float32,
      contextTokens,
    );
  return {
    modelDir,
    name: manifest.name,
    architecture: model.architecture,
    parameters: model.parameters,
    contextTokens,
    weightsBytes: { ...model.weightsBytes },
    residentBytes: { ...residentBytes },
    kvBytesPerToken: { ...kvBytesPerToken },
    memoryBytes: { int8: atWork('int8'), int4: atWork('int4'), float32: atWork('float32') },
    canComplete: manifest.can.complete,
    canChat: manifest.can.chat,
    canEdit: manifest.can.edit,
    note: manifest.note.en,
    model,
  };
}
