/** The models in folders: Hugging Face folders and GGUF files, by the names of files. Reads no models. */
import path from 'node:path';
import { formatIn } from '../download/choices.ts';
import { ggufName } from '../protocol/ggufName.ts';
import type { FoundModel, Source } from './found.ts';
import { type Look, lookAt } from './look.ts';
import { folderName } from './names.ts';

/** Reads pictures for another model. */
const PROJECTOR = /(?:^|[-_.])mmproj/i;

/** The models of a folder, and what `within` finds in each folder in it, unless the folder itself is a model. */
export async function* modelsBelow(
  folder: string,
  look: Look,
  within: (folder: string, look: Look) => Promise<string[]>,
): AsyncGenerator<string> {
  const { names, folders } = await look.read(folder);
  const found = await modelsOf(folder, names);
  yield* found;
  if (found[0] === folder) return;
  for (const name of folders) if (!ggufName(name)) yield* await within(path.join(folder, name), look);
}

/** The folder itself if it is a model, or else its GGUF files. */
export async function modelsIn(folder: string, look: Look): Promise<string[]> {
  return modelsOf(folder, await look.names(folder));
}

/** A repository of GGUF files may have a config.json, too. */
async function modelsOf(folder: string, names: readonly string[]): Promise<string[]> {
  const files = filesIn(folder, names);
  if (!names.includes('config.json') || !(await lookAt(path.join(folder, 'config.json')))?.isFile) return files;
  return files.length === 0 || names.some((name) => name.endsWith('.safetensors')) ? [folder] : files;
}

/** The GGUF files of a folder. Files of several parts are named by their first one, even if it is missing. */
export async function ggufFiles(folder: string, look: Look): Promise<string[]> {
  return filesIn(folder, await look.names(folder));
}

function filesIn(folder: string, names: readonly string[]): string[] {
  const files = names.filter((name) => !PROJECTOR.test(name)).flatMap((name) => ggufName(name)?.first ?? []);
  return [...new Set(files)].map((name) => path.join(folder, name));
}

/** `repository`: "owner/name" in one line, where the place tells it. Its models may be called by it, too. */
export async function described(
  modelDir: string,
  source: Source,
  look: Look,
  repository?: string,
): Promise<FoundModel> {
  const gguf = ggufName(path.basename(modelDir));
  const format = gguf ? formatIn(path.basename(modelDir)) : '';
  const files = gguf
    ? gguf.files.map((name) => path.join(path.dirname(modelDir), name))
    : (await look.names(modelDir))
        .filter((name) => name.endsWith('.safetensors'))
        .map((name) => path.join(modelDir, name));
  let bytes = 0;
  for (const file of files) bytes += (await lookAt(file))?.bytes ?? 0;
  return {
    modelDir,
    name: gguf || repository === undefined ? folderName(modelDir) : repository,
    aliases: gguf && repository !== undefined ? [repository, ...(format ? [`${repository}:${format}`] : [])] : [],
    source,
    bytes,
  };
}
