/** The names by which models are shown, made from their paths. Reads nothing. */
import path from 'node:path';
import { ggufName } from '../protocol/ggufName.ts';
import { oneLine } from '../protocol/oneLine.ts';

/** `models--Qwen--Qwen3-0.6B`; undefined for any other folder. */
export function repositoryId(folder: string): string | undefined {
  const [, owner, name] = /^models--(?:(.+?)--)?(.+)$/s.exec(folder) ?? [];
  return name && oneLine(owner ? `${owner}/${name}` : name);
}

/** "Qwen/Qwen3-0.6B" for a folder of any Hugging Face cache; undefined for any other folder. */
export function repositoryName(modelDir: string): string | undefined {
  const [repository = '', snapshots] = path.resolve(modelDir).split(path.sep).slice(-3);
  return snapshots === 'snapshots' ? repositoryId(repository) : undefined;
}

/** The repository of a model in the cache: of its folder, or of the folder with its file. */
export function repositoryOf(modelDir: string): string | undefined {
  const parent = path.dirname(modelDir);
  return repositoryName(modelDir) ?? repositoryName(parent) ?? repositoryName(path.dirname(parent));
}

/** The name of a model folder or file that is shown, in one line. */
export function folderName(modelDir: string): string {
  return ggufName(path.basename(modelDir))?.model ?? repositoryName(modelDir) ?? oneLine(path.basename(modelDir));
}
