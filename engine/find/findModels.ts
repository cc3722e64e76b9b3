/**
 * Finds the models of this machine: folders and files of the user's, and what Hugging Face's tools, Ollama, LM Studio
 * and llama.cpp have downloaded. Goes by names; the engine inspects the models.
 */
import { setMaxListeners } from 'node:events';
import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { type Machine, repositoryFolder } from '../download/hubCache.ts';
import { unlessAborted } from '../download/waiting.ts';
import { oneLine } from '../protocol/oneLine.ts';
import { described, ggufFiles, modelsBelow, modelsIn } from './modelFolders.ts';
import type { Found, FoundModel, Place } from './found.ts';
import { inHub } from './hubModels.ts';
import { isDenied, Look, lookAt, pieces } from './look.ts';
import { inOllama, partsOfName } from './ollama.ts';
import { placesOf } from './places.ts';

/** A disk that does not answer must not hold up what the others have. */
const MAX_SEARCH_MS = 10_000;

interface Search {
  /** The name of a model that no limit may leave out. */
  wanted?: string;
  maxMs?: number;
}

/**
 * `folders` are those of kvasir.modelFolders: each is a model, or holds models one level deep. GGUF files may be one
 * level deeper.
 */
export async function findModels(
  folders: readonly string[],
  machine: Machine,
  { wanted = '', maxMs = MAX_SEARCH_MS }: Search = {},
): Promise<Found> {
  const late = new AbortController();
  // Node 20 warns of more listeners than 10.
  setMaxListeners(0, late.signal);
  const timer = setTimeout(() => late.abort(), maxMs);
  try {
    return await search(await placesOf(folders, machine), wanted, late.signal);
  } finally {
    clearTimeout(timer);
  }
}

async function search(all: readonly Place[], wanted: string, late: AbortSignal): Promise<Found> {
  const [places, denied]: [Place[], Place[]] = [[], []];
  const models: FoundModel[] = [];
  let isCut = false;
  const seen = new Set<string>();
  const names = wanted === '' ? [] : [...partsOfName(wanted), repositoryFolder(wanted)];
  // All at once, and one after the other in their order.
  const answers = all.map((place) => ({
    place,
    state: inTime(stateOf(place.folder), late),
    ...filled(place, names, late),
  }));
  for (const { place, state: coming, look, found, done } of answers) {
    const state = await coming;
    isCut ||= state === undefined;
    if (state === 'denied') denied.push(place);
    if (state === undefined || state === 'denied' || state === 'missing') continue;
    // A folder of the user's is read in another way than that of a tool.
    const key = `${place.source} ${state.id}`;
    if (seen.has(key)) continue;
    seen.add(key);
    places.push(place);
    await done;
    // A search that is late may still be adding to its list.
    models.push(...found);
    isCut ||= look.isCut || late.aborted;
    if (look.denied !== undefined) denied.push({ ...place, folder: look.denied });
  }
  return { models: await once(models, late), places, denied, isCut };
}

async function stateOf(folder: string): Promise<{ id: string } | 'missing' | 'denied'> {
  const id = (await lookAt(folder))?.id;
  if (id !== undefined) return { id };
  return (await isDenied(folder)) ? 'denied' : 'missing';
}

/** The models of a place. They are in `found` when `done`, or when it is too late. */
function filled(place: Place, names: readonly string[], late: AbortSignal) {
  const look = new Look(names, late);
  const found: FoundModel[] = [];
  const fill = async () => {
    for await (const model of inPlace(place, look)) {
      if (!look.take()) return;
      found.push(model);
    }
  };
  return { look, found, done: inTime(fill(), late) };
}

/** Undefined if it takes too long. */
const inTime = <T>(running: Promise<T>, late: AbortSignal): Promise<T | undefined> =>
  unlessAborted(running, late).catch((error: unknown) => {
    if (!late.aborted) throw error;
    return undefined;
  });

async function* inPlace({ source, folder }: Place, look: Look): AsyncGenerator<FoundModel> {
  switch (source) {
    case 'folder':
      for await (const each of modelsBelow(folder, look, modelsIn)) yield described(each, source, look);
      return;
    case 'huggingFace':
      return yield* inHub(folder, look);
    case 'ollama':
      return yield* inOllama(folder, look);
    case 'lmStudio':
      return yield* inLmStudio(folder, look);
    case 'llamaCpp':
      for (const each of await ggufFiles(folder, look)) yield described(each, source, look);
  }
}

/** Its layout is publisher/repository/files. */
async function* inLmStudio(folder: string, look: Look): AsyncGenerator<FoundModel> {
  for (const publisher of (await look.read(folder)).folders)
    for (const repository of (await look.read(path.join(folder, publisher))).folders)
      for (const modelDir of await modelsIn(path.join(folder, publisher, repository), look))
        yield described(modelDir, 'lmStudio', look, oneLine(`${publisher}/${repository}`));
}

interface Group {
  kept: FoundModel;
  /** All names and paths. */
  names: Set<string>;
}

/** Each model once, under its shortest name. The others become aliases. */
async function once(all: readonly FoundModel[], late: AbortSignal): Promise<FoundModel[]> {
  const groups: Group[] = [];
  const byKey = new Map<string, Group>();
  const perSize = new Map<number, number>();
  for (const { bytes } of all) perSize.set(bytes, (perSize.get(bytes) ?? 0) + 1);
  const groupOf = (keys: readonly string[]) => keys.map((key) => byKey.get(key)).find((each) => each !== undefined);
  for (const model of all) {
    const keys = model.fault === undefined ? ((await inTime(keysOf(model), late)) ?? []) : [];
    if (keys.length > 0 && groupOf(keys) === undefined && perSize.get(model.bytes)! > 1)
      keys.push(...((await inTime(sampleKeys(model), late)) ?? []));
    const known = groupOf(keys);
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

/** Equal for the same file or folder, and for blobs of one hash. */
async function keysOf({ modelDir, bytes }: FoundModel): Promise<string[]> {
  const found = await lookAt(modelDir);
  const keys = [`${bytes} ${found?.id ?? modelDir}`];
  if (found?.isFile !== true) return keys;
  const name = path.basename(await realpath(modelDir).catch(() => modelDir));
  const hash = /^(?:sha256-)?([0-9a-f]{64})$/.exec(name)?.[1];
  if (hash !== undefined) keys.push(`${bytes} ${hash}`);
  return keys;
}

/**
 * Equal for GGUF files that agree in size and samples. Of a model in parts, the others may be missing beside one copy
 * of the first part.
 */
async function sampleKeys({ modelDir, bytes }: FoundModel): Promise<string[]> {
  const found = await lookAt(modelDir);
  // Parts of one model have one size, and one header.
  if (found?.isFile !== true || found.bytes !== bytes) return [];
  const sample = await pieces(modelDir, samplePlaces(bytes), SAMPLE_BYTES);
  return sample !== null && sample.length > 0 ? [`${bytes} ${createHash('sha256').update(sample).digest('hex')}`] : [];
}

/** Evenly over the file, or all of a small one. Models that were made of each other differ in some tensors only. */
function samplePlaces(bytes: number): number[] {
  const count = Math.min(MAX_SAMPLES, Math.ceil(bytes / SAMPLE_BYTES));
  const step = count > 1 ? Math.max(0, bytes - SAMPLE_BYTES) / (count - 1) : 0;
  return Array.from({ length: count }, (_, i) => Math.floor(i * step));
}
