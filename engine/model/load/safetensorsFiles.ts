/**
 * Finds and opens the safetensors files of a model folder, with shards by the index file. Does not read tensors.
 */
import { type ModelFolder, type OpenFile, invalid, refuseLfsPointer } from './modelFolder.ts';
import { otherContent } from './otherFormats.ts';
import { headerLength, parseHeader, type TensorInfo } from './safetensors.ts';
import { type OwnedTensor, readExactly, type TensorFiles } from './tensorFiles.ts';

const SINGLE = 'model.safetensors';
const INDEX = 'model.safetensors.index.json';
/** Most weight files. Each stays open. */
const MAX_SHARDS = 512;
/** A pointer of Git LFS has about 130 bytes. */
const MAX_POINTER_BYTES = 1024;
/** What torch.compile puts into the names of tensors. */
const COMPILED = /(^|\.)_orig_mod\./g;

interface Shard {
  readonly file: OpenFile;
  readonly tensors: Map<string, TensorInfo>;
}

async function openShard(folder: ModelFolder, name: string): Promise<Shard | null> {
  const file = await folder.openFile(name);
  if (!file) return null;
  try {
    const start = new Uint8Array(Math.min(file.size <= MAX_POINTER_BYTES ? MAX_POINTER_BYTES : 8, file.size));
    await readExactly(file, start, 0);
    refuseLfsPointer(name, new TextDecoder('latin1').decode(start));
    const prefix = start.subarray(0, 8);
    const header = new Uint8Array(headerLength(prefix, name, file.size));
    await readExactly(file, header, 8);
    return { file, tensors: parseHeader(header, name, file.size) };
  } catch (error) {
    await file.handle.close();
    throw error;
  }
}

/** Opens model.safetensors, or the shards that model.safetensors.index.json names. */
export async function openSafetensors(folder: ModelFolder): Promise<TensorFiles> {
  const shards = new Map<string, Shard>();
  const tensors = new Map<string, OwnedTensor>();
  const own = (shard: Shard, stored: string): void => {
    const name = stored.replace(COMPILED, '$1');
    if (tensors.has(name))
      throw invalid(`${shard.file.name}: tensor ${JSON.stringify(name.slice(0, 200))} is there under two names.`);
    tensors.set(name, { file: shard.file, info: shard.tensors.get(stored)! });
  };
  const opened = (): TensorFiles => ({
    files: [...shards.values()].map(({ file }) => file),
    tensors,
    index: shards.size === 1 ? [...shards.keys()][0]! : INDEX,
    config: 'config.json',
    nameInFile: (tensor) => tensor,
  });
  try {
    const single = await openShard(folder, SINGLE);
    if (single) {
      shards.set(SINGLE, single);
      for (const name of single.tensors.keys()) own(single, name);
      return opened();
    }
    const index = await folder.readJson(INDEX);
    if (!index) throw invalid(await withoutWeights(folder));
    const map = index.value.weight_map;
    if (typeof map !== 'object' || map === null || Array.isArray(map))
      throw invalid(`${INDEX}: weight_map is missing; it must map tensor names to files.`);
    for (const [tensor, name] of Object.entries(map)) {
      if (typeof name !== 'string')
        throw invalid(`${INDEX}: weight_map names no file for ${JSON.stringify(tensor.slice(0, 200))}.`);
      let shard = shards.get(name);
      if (!shard) {
        if (shards.size >= MAX_SHARDS)
          throw invalid(`${INDEX}: weight_map names more than ${MAX_SHARDS} files: download it again.`);
        const opened = await openShard(folder, name);
        if (!opened) throw invalid(`${name.slice(0, 200)} is missing, although ${INDEX} names it: download it.`);
        shard = opened;
        shards.set(name, shard);
      }
      if (!shard.tensors.has(tensor))
        throw invalid(
          `${name}: tensor ${JSON.stringify(tensor.slice(0, 200))} is missing, although ${INDEX} places it there.`,
        );
      own(shard, tensor);
    }
    return opened();
  } catch (error) {
    for (const shard of shards.values()) await shard.file.handle.close();
    throw error;
  }
}

/** Message for a folder without weights: what it holds instead. */
async function withoutWeights(folder: ModelFolder): Promise<string> {
  const other = await otherContent(folder);
  return `${SINGLE} and ${INDEX} are missing; ${other ?? 'only weights in safetensors files are supported'}.`;
}
