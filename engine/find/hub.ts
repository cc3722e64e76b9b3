/** The models in the cache of the Hugging Face tools, by its own layout. */
import path from 'node:path';
import type { FoundModel } from './found.ts';
import { described, ggufFiles, modelsBelow } from './folders.ts';
import { Look, lookAt, shortText } from './look.ts';
import { repositoryId } from './names.ts';

const MAX_REF_BYTES = 1000;

export async function inHub(hub: string, look: Look): Promise<FoundModel[]> {
  const found: FoundModel[] = [];
  for (const repository of await look.names(hub)) {
    const name = repositoryId(repository);
    if (name === undefined) continue;
    for (const modelDir of await modelsOf(path.join(hub, repository), look))
      found.push(await described(modelDir, 'huggingFace', look, name));
  }
  return found;
}

/** The models of a repository ("owner/name") that are in the cache. */
export function inRepository(hub: string, repository: string): Promise<string[]> {
  return modelsOf(path.join(hub, `models--${repository.replaceAll('/', '--')}`), new Look());
}

/** Those of the first snapshot that has some. */
async function modelsOf(repository: string, look: Look): Promise<string[]> {
  for (const snapshot of await snapshotsOf(repository, look)) {
    const models = await modelsBelow(snapshot, look, ggufFiles);
    if (models.length > 0) return models;
  }
  return [];
}

/** The snapshot that `main` names, then the newest ones. */
async function snapshotsOf(repository: string, look: Look): Promise<string[]> {
  const folder = path.join(repository, 'snapshots');
  const byTime: { name: string; time: number }[] = [];
  for (const name of await look.names(folder))
    byTime.push({ name, time: (await lookAt(path.join(folder, name)))?.mtimeMs ?? 0 });
  byTime.sort((a, b) => b.time - a.time);
  const main = (await shortText(path.join(repository, 'refs', 'main'), MAX_REF_BYTES))?.trim() ?? '';
  const names = new Set([main, ...byTime.map(({ name }) => name)]);
  return [...names].filter((name) => name && !/[/\\]|^\.+$/.test(name)).map((name) => path.join(folder, name));
}
