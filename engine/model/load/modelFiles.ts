/** Opens a model by its path: a folder in the Hugging Face layout, or a GGUF file. Does not know what the files mean. */
import { open, stat } from 'node:fs/promises';
import { GgufModel } from './gguf/ggufModel.ts';
import { ModelFolder } from './modelFolder.ts';

/** Both give the same files by name. */
export type ModelFiles = ModelFolder | GgufModel;

/** @throws RequestError `modelInvalid` or `modelUnsupported`, with the reason in one sentence */
export async function openModelFiles(modelPath: string): Promise<ModelFiles> {
  return (await isGguf(modelPath)) ? GgufModel.open(modelPath) : ModelFolder.open(modelPath);
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
