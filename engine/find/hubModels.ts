/** The models in the cache of the Hugging Face tools, by its own layout. */
import path from 'node:path';
import { repositoryFolder } from '../download/hubCache.ts';
import type { FoundModel } from './found.ts';
import { described, ggufFiles, modelsBelow } from './modelFolders.ts';
import { Look, lookAt, shortText } from './look.ts';
import { repositoryId } from './names.ts';

const MAX_REF_BYTES = 1000;
/** Snapshots of one repository: whose dates are read, and that are looked into. */
const MAX_DATED = 1000;
const MAX_SNAPSHOTS = 30;

export async function* inHub(hub: string, look: Look): AsyncGenerator<FoundModel> {
  for (const repository of await look.names(hub)) {
    const name = repositoryId(repository);
    if (name === undefined) continue;
    for (const modelDir of await modelsOf(path.join(hub, repository), look))
      yield described(modelDir, 'huggingFace', look, name);
  }
}

/** The models of a repository ("owner/name") that are in the cache. */
export function inRepository(hub: string, repository: string): Promise<string[]> {
  return modelsOf(path.join(hub, repositoryFolder(repository)), new Look());
}

/** Those of the first snapshot that has some: of the one that `main` names, then of the newest. */
async function modelsOf(repository: string, look: Look): Promise<string[]> {
  const folder = path.join(repository, 'snapshots');
  const main = (await shortText(path.join(repository, 'refs', 'main'), MAX_REF_BYTES))?.trim() ?? '';
  const isName = main !== '' && !/[/\\]|^\.+$/.test(main);
  const found = isName ? await inSnapshot(path.join(folder, main), look) : [];
  if (found.length > 0) return found;
  const others = await newest(folder, look);
  if (others.length > MAX_SNAPSHOTS) look.cut();
  for (const name of others.slice(0, MAX_SNAPSHOTS)) {
    const models = name === main ? [] : await inSnapshot(path.join(folder, name), look);
    if (models.length > 0) return models;
  }
  return [];
}

async function inSnapshot(folder: string, look: Look): Promise<string[]> {
  const found: string[] = [];
  for await (const model of modelsBelow(folder, look, ggufFiles)) found.push(model);
  return found;
}

async function newest(folder: string, look: Look): Promise<string[]> {
  const { folders } = await look.read(folder);
  if (folders.length > MAX_DATED) look.cut();
  const byTime: { name: string; time: number }[] = [];
  for (const name of folders.slice(0, MAX_DATED))
    byTime.push({ name, time: (await lookAt(path.join(folder, name)))?.mtimeMs ?? 0 });
  return byTime.sort((a, b) => b.time - a.time).map(({ name }) => name);
}
