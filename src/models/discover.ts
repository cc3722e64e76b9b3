/**
 * Finds the models of this machine: those in the Hugging Face cache, and folders and GGUF files of the user's. Goes
 * by names and reads nothing; the engine inspects the models. Does not use the editor's API.
 */
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import { expandHome, hubFolder, type Machine } from '../../engine/download/hubCache.ts';
import { ggufName } from '../../engine/protocol/ggufName.ts';
import { oneLine } from '../../engine/protocol/oneLine.ts';

export interface FoundModel {
  /** A folder, or a GGUF file. */
  modelDir: string;
  /** For display, in one line: "Qwen/Qwen3-0.6B", or the name of the folder or file. */
  name: string;
  source: 'huggingFace' | 'folder';
}

/** A cache can hold hundreds of repositories. The newest are the most likely choice. */
const MAX_MODELS = 50;

/**
 * `folders` are those of kvasir.modelFolders: each is a model, or holds models one level deep. GGUF files may be one
 * level deeper.
 */
export function findModels(folders: readonly string[], machine: Machine): FoundModel[] {
  const found = [
    ...folders.flatMap((folder) => inFolder(expandHome(folder, machine.home))),
    ...inHub(hubFolder(machine)),
  ];
  const seen = new Set<string>();
  return found
    .filter(({ modelDir }) => {
      const real = realPath(modelDir);
      return !seen.has(real) && seen.add(real);
    })
    .slice(0, MAX_MODELS);
}

/** "Qwen/Qwen3-0.6B" for a folder of any Hugging Face cache; undefined for any other folder. */
export function repositoryName(modelDir: string): string | undefined {
  const [repository = '', snapshots] = path.resolve(modelDir).split(path.sep).slice(-3);
  return snapshots === 'snapshots' ? idOf(repository) : undefined;
}

/** The name of a model folder or file that is shown, in one line. */
export function folderName(modelDir: string): string {
  return ggufName(path.basename(modelDir))?.model ?? repositoryName(modelDir) ?? oneLine(path.basename(modelDir));
}

/** `models--Qwen--Qwen3-0.6B` */
function idOf(repository: string): string | undefined {
  const [, owner, name] = /^models--(?:(.+?)--)?(.+)$/s.exec(repository) ?? [];
  return name && oneLine(owner ? `${owner}/${name}` : name);
}

function inHub(hub: string): FoundModel[] {
  return namesIn(hub).flatMap((repository) => {
    const name = idOf(repository);
    if (!name) return [];
    for (const snapshot of snapshotsOf(path.join(hub, repository))) {
      const models = modelsBelow(snapshot, ggufFiles);
      if (models.length > 0)
        return models.map((modelDir) => ({
          modelDir,
          name: modelDir === snapshot ? name : folderName(modelDir),
          source: 'huggingFace' as const,
        }));
    }
    return [];
  });
}

/** The snapshot that `main` names, then the newest ones. */
function snapshotsOf(repository: string): string[] {
  const snapshots = path.join(repository, 'snapshots');
  const byTime = namesIn(snapshots)
    .map((name) => ({ name, time: statSync(path.join(snapshots, name), { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((a, b) => b.time - a.time);
  const names = [textOf(path.join(repository, 'refs', 'main')), ...byTime.map(({ name }) => name)];
  return names.filter((name) => name && !/[/\\]|^\.+$/.test(name)).map((name) => path.join(snapshots, name));
}

function inFolder(folder: string): FoundModel[] {
  if (!path.isAbsolute(folder)) return [];
  return modelsBelow(folder, modelsIn).map((modelDir) => ({
    modelDir,
    name: folderName(modelDir),
    source: 'folder',
  }));
}

/** The models of a folder, and what `within` finds in each folder in it, unless the folder itself is a model. */
function modelsBelow(folder: string, within: (folder: string) => string[]): string[] {
  const own = modelsIn(folder);
  if (own[0] === folder) return own;
  return [...own, ...namesIn(folder).flatMap((name) => within(path.join(folder, name)))];
}

/** The folder itself if it is a model, or else its GGUF files. A repository of GGUF files may have a config.json, too. */
function modelsIn(folder: string): string[] {
  const files = ggufFiles(folder);
  if (!hasConfig(folder)) return files;
  return files.length === 0 || namesIn(folder).some((name) => name.endsWith('.safetensors')) ? [folder] : files;
}

function hasConfig(folder: string): boolean {
  // Missing and unreadable folders hold no models.
  try {
    return statSync(path.join(folder, 'config.json')).isFile();
  } catch {
    return false;
  }
}

/** The GGUF files of a folder. Files of several parts are named by their first one. */
function ggufFiles(folder: string): string[] {
  return namesIn(folder)
    .filter((name) => ggufName(name)?.part === 1 && !PROJECTOR.test(name))
    .map((name) => path.join(folder, name));
}

/** Reads pictures for another model. */
const PROJECTOR = /^mmproj/i;

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
}

function realPath(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}
