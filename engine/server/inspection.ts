/**
 * Describes a model folder without loading it: config, shapes, sizes, and what tokenizer, chat template and manifest
 * offer. Is fast enough for many folders. Finds no bad tensor values, and no chat template that runs but does not fit.
 */
import { type ModelInspection, inspectModel } from '../model/import/importModel.ts';
import { cacheBytesAtWork } from '../core/memoryBudget.ts';
import { nativeFault } from '../model/native/selfTest.ts';
import { inOwnWords, type ModelFiles, openModelFiles } from '../model/load/modelFiles.ts';
import type { InspectedModel } from '../protocol/stats.ts';
import type { Precision } from '../protocol/tasks.ts';
import { ChatTemplate } from '../text/format/chatTemplate.ts';
import { withoutFaulty } from '../text/format/faults.ts';
import { readManifest } from '../text/format/manifest.ts';
import { checkTokenizer, offersOf } from '../text/format/modelText.ts';

export interface FolderInspection extends InspectedModel {
  readonly model: Omit<ModelInspection, 'tokens'>;
}

/**
 * `mayBeNative`: see LoadOptions.native.
 * @throws RequestError `modelInvalid` or `modelUnsupported`, with the reason in one sentence
 */
export async function inspectFolder(modelDir: string, mayBeNative = true): Promise<FolderInspection> {
  const folder = await openModelFiles(modelDir);
  const native = mayBeNative && (await nativeFault()) === null;
  return inOwnWords(folder, () => inspectFiles(modelDir, folder, native));
}

async function inspectFiles(modelDir: string, folder: ModelFiles, native: boolean): Promise<FolderInspection> {
  const { tokens, ...model } = await inspectModel(modelDir, native, folder);
  await checkTokenizer(folder);
  const template = await ChatTemplate.inspect(folder);
  const tokenizerConfig = await folder.readJson('tokenizer_config.json');
  const { manifest: promised, fim } = await readManifest(
    folder,
    offersOf((token) => tokens.has(token), template.exists, tokens, tokenizerConfig?.value ?? {}),
  );
  const manifest = withoutFaulty(promised, { chat: template.fault });
  const { residentBytes, kvBytesPerToken, contextTokens } = model;
  // Rows are float32 only with float32 weights. Then they need no scratch, which has float32 rows.
  const atWork = (precision: Precision) => {
    const isCoded = precision !== 'float32';
    const scratchBytes = isCoded && !model.isNative ? kvBytesPerToken.float32 : 0;
    return (
      residentBytes[precision] +
      cacheBytesAtWork(kvBytesPerToken[isCoded ? 'int8' : 'float32'], scratchBytes, contextTokens)
    );
  };
  return {
    modelDir,
    name: manifest.name,
    architecture: model.architecture,
    format: model.format,
    parameters: model.parameters,
    contextTokens,
    weightsBytes: { ...model.weightsBytes },
    residentBytes: { ...residentBytes },
    kvBytesPerToken: { ...kvBytesPerToken },
    memoryBytes: { int8: atWork('int8'), int4: atWork('int4'), float32: atWork('float32') },
    canComplete: manifest.can.complete,
    canChat: manifest.can.chat,
    canEdit: manifest.can.edit,
    completionFault: fim.layout === undefined && fim.fault !== null ? folder.said(fim.fault) : null,
    chatFault: manifest === promised || template.fault === undefined ? null : folder.said(template.fault),
    note: manifest.note.en,
    model,
  };
}
