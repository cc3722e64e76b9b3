/**
 * Finds the models of this machine: folders and files of the user's, and what Hugging Face's tools, Ollama, LM Studio
 * and llama.cpp have downloaded. Goes by names; the engine inspects the models.
 */
import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import type { Machine } from '../download/hubCache.ts';
import { oneLine } from '../protocol/oneLine.ts';
import { described, ggufFiles, modelsBelow, modelsIn } from './folders.ts';
import type { Found, FoundModel, Place } from './found.ts';
import { inHub } from './hub.ts';
import { isDenied, Look, lookAt, pieces } from './look.ts';
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
    // A folder of the user's is read in another way than that of a tool.
    const key = `${place.source} ${id}`;
    if (id === undefined || seen.has(key)) continue;
    seen.add(key);
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
        found.push(await described(modelDir, 'lmStudio', look, oneLine(`${publisher}/${repository}`)));
  return found;
}

interface Group {
  kept: FoundModel;
  /** All names and paths. */
  names: Set<string>;
}

/** Each model once, under its shortest name. The others become aliases. */
async function once(all: readonly FoundModel[]): Promise<FoundModel[]> {
  const groups: Group[] = [];
  const byKey = new Map<string, Group>();
  const perSize = new Map<number, number>();
  for (const { bytes } of all) perSize.set(bytes, (perSize.get(bytes) ?? 0) + 1);
  for (const model of all) {
    const keys = model.fault === undefined ? await keysOf(model, perSize.get(model.bytes)! > 1) : [];
    const known = keys.map((key) => byKey.get(key)).find((each) => each !== undefined);
    const group = known ?? { kept: model, names: new Set() };
    if (known === undefined) groups.push(group);
    for (const name of [model.name, ...model.aliases, model.modelDir]) group.names.add(name);
    if (model.name.length < group.kept.name.length) group.kept = model;
    for (const key of keys) byKey.set(key, group);
  }
  return groups.map(({ kept, names }) => ({
    ...kept,
    aliases: [...names].filter((name) => name !== kept.name && name !== kept.modelDir),
  }));
}

const MAX_SAMPLES = 64;
const SAMPLE_BYTES = 4096;

/**
 * Equal for the same file or folder, for blobs of one hash, and for GGUF files that agree in size and samples. Of a
 * model in parts, the others may be missing beside one copy of the first part.
 */
async function keysOf({ modelDir, bytes }: FoundModel, isSizeShared: boolean): Promise<string[]> {
  const found = await lookAt(modelDir);
  const keys = [`${bytes} ${found?.id ?? modelDir}`];
  if (found?.isFile !== true) return keys;
  const name = path.basename(await realpath(modelDir).catch(() => modelDir));
  const hash = /^(?:sha256-)?([0-9a-f]{64})$/.exec(name)?.[1];
  if (hash !== undefined) keys.push(`${bytes} ${hash}`);
  // Parts of one model have one size, and one header.
  if (!isSizeShared || found.bytes !== bytes) return keys;
  const sample = await pieces(modelDir, samplePlaces(bytes), SAMPLE_BYTES);
  if (sample !== null && sample.length > 0) keys.push(`${bytes} ${createHash('sha256').update(sample).digest('hex')}`);
  return keys;
}

/** Evenly over the file, or all of a small one. Models that were made of each other differ in some tensors only. */
function samplePlaces(bytes: number): number[] {
  const step = Math.max(SAMPLE_BYTES, Math.floor((bytes - SAMPLE_BYTES) / (MAX_SAMPLES - 1)));
  return Array.from({ length: Math.min(MAX_SAMPLES, Math.ceil(bytes / step)) }, (_, i) => i * step);
}
