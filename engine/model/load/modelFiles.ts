/** Opens a model by its path: a folder in the Hugging Face layout, or a GGUF file. Does not know what the files mean. */
import { open, stat } from 'node:fs/promises';
import { RequestError, reasonOf } from '../../protocol/errors.ts';
import { GgufModel } from './gguf/ggufModel.ts';
import { invalid, isMissing, ModelFolder } from './modelFolder.ts';

/** Both give the same files by name. */
export type ModelFiles = ModelFolder | GgufModel;

/** @throws RequestError `modelInvalid` or `modelUnsupported`, with the reason in one sentence */
export async function openModelFiles(modelPath: string): Promise<ModelFiles> {
  if (/\.gguf$/i.test(modelPath))
    await stat(modelPath).catch((error: unknown) => {
      throw invalid(
        `The GGUF file ${modelPath} cannot be opened: ` +
          `${isMissing(error) ? 'there is no such file; check its path' : reasonOf(error)}.`,
      );
    });
  return (await isGguf(modelPath)) ? GgufModel.open(modelPath) : ModelFolder.open(modelPath);
}

/** Does `work`. Its faults name files that the user has. */
export async function inOwnWords<T>({ said }: ModelFiles, work: () => Promise<T> | T): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RequestError) error.message = said(error.message);
    throw error;
  }
}

/** By its name, or by how it begins: blobs of Ollama have no name. */
async function isGguf(modelPath: string): Promise<boolean> {
  const info = await stat(modelPath).catch(() => null);
  if (!info?.isFile()) return false;
  if (/\.gguf$/i.test(modelPath)) return true;
  const file = await open(modelPath, 'r').catch(() => null);
  if (file === null) return false;
  try {
    const start = Buffer.alloc(4);
    await file.read(start, 0, 4, 0);
    return start.toString('latin1') === 'GGUF';
  } catch {
    return false;
  } finally {
    await file.close();
  }
}
