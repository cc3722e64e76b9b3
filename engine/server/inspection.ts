/**
 * Describes a model folder without loading it: config, shapes, sizes, and what tokenizer, chat template and manifest
 * offer. Is fast enough for many folders. Finds no bad tensor values, and no chat template that runs but does not fit.
 */
import { type ModelInspection, inspectModel } from '../model/import/importModel.ts';
import { cacheBytesAtWork } from '../core/memoryBudget.ts';
import { ModelFolder } from '../model/load/modelFolder.ts';
import type { InspectedModel } from '../protocol/stats.ts';
import type { Precision } from '../protocol/tasks.ts';
import { ChatTemplate } from '../text/format/chatTemplate.ts';
import { withoutFaulty } from '../text/format/faults.ts';
import { readManifest } from '../text/format/manifest.ts';
import { checkTokenizer, offersOf } from '../text/format/modelText.ts';

export interface FolderInspection extends InspectedModel {
  readonly model: Omit<ModelInspection, 'tokens'>;
}

/** @throws RequestError `modelInvalid` or `modelUnsupported`, with the reason in one sentence */
export async function inspectFolder(modelDir: string): Promise<FolderInspection> {
  const { tokens, ...model } = await inspectModel(modelDir);
  const folder = await ModelFolder.open(modelDir);
  await checkTokenizer(folder);
  const template = await ChatTemplate.inspect(folder);
  const { manifest: promised, fim } = await readManifest(
    folder,
    offersOf((token) => tokens.has(token), template.exists, tokens),
  );
  const manifest = withoutFaulty(promised, { chat: template.fault });
  const { residentBytes, kvBytesPerToken, contextTokens } = model;
  // KV rows are float32 only with float32 weights. Rows of the scratch are always float32.
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
    completionFault: fim.layout === undefined ? fim.fault : null,
    chatFault: manifest === promised ? null : (template.fault ?? null),
    note: manifest.note.en,
    model,
  };
}
