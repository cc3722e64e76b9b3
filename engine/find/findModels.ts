/**
 * Finds the models of this machine: folders and files of the user's, and what Hugging Face's tools, Ollama, LM Studio
 * and llama.cpp have downloaded. Goes by names; the engine inspects the models.
 */
import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import type { Machine } from '../download/hubCache.ts';
import { described, ggufFiles, modelsBelow, modelsIn } from './folders.ts';
import type { Found, FoundModel, Place } from './found.ts';
import { inHub } from './hub.ts';
import { isDenied, isFolder, Look, lookAt, pieces } from './look.ts';
import { inOllama } from './ollama.ts';
import { placesOf } from './places.ts';

/**
 * `folders` are those of kvasir.modelFolders: each is a model, or holds models one level deep. GGUF files may be one
 * level deeper.
 */
export async function findModels(folders: readonly string[], machine: Machine): Promise<Found> {
  const [all, places, denied]: [FoundModel[], Place[], Place[]] = [[], [], []];
  let isCut = false;
  const seen = new Set<string>();
  for (const place of await placesOf(folders, machine)) {
    const id = (await lookAt(place.folder))?.id;
    if (id === undefined && (await isDenied(place.folder))) denied.push(place);
    if (id === undefined || (seen.has(id) && place.source !== 'folder')) continue;
    seen.add(id);
    places.push(place);
    const look = new Look();
    all.push(...(await inPlace(place, look)));
    isCut ||= look.isCut;
    if (look.denied !== undefined) denied.push({ ...place, folder: look.denied });
  }
  return { models: await once(all), places, denied, isCut };
}

async function inPlace({ source, folder }: Place, look: Look): Promise<FoundModel[]> {
  switch (source) {
    case 'folder':
      return Promise.all((await modelsBelow(folder, look, modelsIn)).map((each) => described(each, source, look)));
    case 'huggingFace':
      return inHub(folder, look);
    case 'ollama':
      return inOllama(folder, look);
    case 'lmStudio':
      return inLmStudio(folder, look);
    case 'llamaCpp':
      return Promise.all((await ggufFiles(folder, look)).map((each) => described(each, source, look)));
  }
}

/** Its layout is publisher/repository/files. */
async function inLmStudio(folder: string, look: Look): Promise<FoundModel[]> {
  const found: FoundModel[] = [];
  for (const publisher of await look.names(folder))
    for (const repository of await look.names(path.join(folder, publisher)))
      for (const modelDir of await modelsIn(path.join(folder, publisher, repository), look))
        found.push(await described(modelDir, 'lmStudio', look, `${publisher}/${repository}`));
  return found;
}

/** Each model once, under its shortest name. The others become aliases. */
async function once(all: readonly FoundModel[]): Promise<FoundModel[]> {
  const found: FoundModel[] = [];
  const places = new Map<string, number>();
  const perSize = new Map<number, number>();
  for (const { bytes } of all) perSize.set(bytes, (perSize.get(bytes) ?? 0) + 1);
  for (const model of all) {
    if (model.fault !== undefined) {
      found.push(model);
      continue;
    }
    const keys = await keysOf(model, perSize.get(model.bytes)! > 1);
    const at = keys.map((key) => places.get(key)).find((place) => place !== undefined);
    if (at === undefined) found.push(model);
    else found[at] = merged(found[at]!, model);
    for (const key of keys) places.set(key, at ?? found.length - 1);
  }
  return found;
}

function merged(first: FoundModel, second: FoundModel): FoundModel {
  const [kept, other] = second.name.length < first.name.length ? [second, first] : [first, second];
  const aliases = new Set([...kept.aliases, other.name, ...other.aliases, other.modelDir]);
  for (const own of [kept.name, kept.modelDir]) aliases.delete(own);
  return { ...kept, aliases: [...aliases] };
}

const SAMPLE_BYTES = 16_384;

/** Equal for the same file or folder, for blobs of one hash, and for GGUF files that agree in size and samples. */
async function keysOf({ modelDir, bytes }: FoundModel, isSizeShared: boolean): Promise<string[]> {
  const keys = [(await lookAt(modelDir))?.id ?? modelDir];
  if (await isFolder(modelDir)) return keys;
  const name = path.basename(await realpath(modelDir).catch(() => modelDir));
  const hash = /^(?:sha256-)?([0-9a-f]{64})$/.exec(name)?.[1];
  if (hash !== undefined) keys.push(hash);
  // Parts of one model have one size, and one header.
  if (!isSizeShared || (await lookAt(modelDir))?.bytes !== bytes) return keys;
  const sample = await pieces(modelDir, [0, Math.floor(bytes / 2), Math.max(0, bytes - SAMPLE_BYTES)], SAMPLE_BYTES);
  if (sample !== null && sample.length > 0) keys.push(`${bytes} ${createHash('sha256').update(sample).digest('hex')}`);
  return keys;
}
