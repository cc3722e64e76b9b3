/**
 * The hash of a file's content. Reads a file once: the hash is kept in the cache folder with what the file system says
 * of the file. A change of the content also changes that, even if size and modification time stay. Does not know models.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { makeFolders } from '../../kv/disk/makeFolders.ts';
import { invalid, type OpenFile } from '../load/modelFolder.ts';
import { readExactly } from '../load/tensorFiles.ts';

/** Hidden, so that it is no entry of the cache. */
const FILE = '.contents.json';
const MAX_FILES = 500;
const READ_BYTES = 1 << 20;
/** The clocks of file systems are coarse: what has just changed may change again without another time. */
const SETTLED_MS = 2000;

/** Hexadecimal hashes of contents by what identifies a state of a file. */
type Known = Record<string, string>;

/** @throws RequestError if a file changes while it is read */
export async function contentsOf(files: readonly OpenFile[], cacheDir: string): Promise<string[]> {
  const known = await readKnown(cacheDir);
  const fresh: Known = {};
  const hashes: string[] = [];
  for (const file of files) {
    const { state, changedMs } = await stateOf(file);
    const hash = known[state] ?? (await hashOf(file));
    if ((await stateOf(file)).state !== state) throw invalid(`${file.name} changed while it was read.`);
    const isSettled = changedMs < Date.now() - SETTLED_MS;
    if (known[state] === undefined && isSettled) fresh[state] = hash;
    hashes.push(hash);
  }
  if (Object.keys(fresh).length > 0) await keep(cacheDir, fresh);
  return hashes;
}

async function stateOf({ handle }: OpenFile): Promise<{ state: string; changedMs: number }> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await handle.stat({ bigint: true });
  const latest = mtimeNs > ctimeNs ? mtimeNs : ctimeNs;
  // Some file systems number nothing.
  return {
    state: [dev, ino, size, mtimeNs, ctimeNs].join(' '),
    changedMs: ino === 0n ? Infinity : Number(latest) / 1e6,
  };
}

async function hashOf(file: OpenFile): Promise<string> {
  const hash = createHash('sha256');
  const buffer = new Uint8Array(Math.min(READ_BYTES, file.size));
  for (let at = 0; at < file.size; at += buffer.length) {
    const part = buffer.subarray(0, Math.min(buffer.length, file.size - at));
    await readExactly(file, part, at);
    hash.update(part);
  }
  return hash.digest('hex');
}

async function readKnown(cacheDir: string): Promise<Known> {
  try {
    const value: unknown = JSON.parse(await readFile(path.join(cacheDir, FILE), 'utf8'));
    const entries = Object.entries((value ?? {}) as Record<string, unknown>);
    return Object.fromEntries(
      entries.filter((entry): entry is [string, string] => /^[0-9a-f]{64}$/.test(String(entry[1]))),
    );
  } catch {
    return {};
  }
}

/** Several processes may do so at the same time: what one of them loses is hashed once more. */
async function keep(cacheDir: string, fresh: Known): Promise<void> {
  const temporary = path.join(cacheDir, `${FILE}.${randomBytes(4).toString('hex')}`);
  try {
    await makeFolders(cacheDir);
    const all = Object.entries({ ...(await readKnown(cacheDir)), ...fresh }).slice(-MAX_FILES);
    await writeFile(temporary, JSON.stringify(Object.fromEntries(all), null, 1));
    await rename(temporary, path.join(cacheDir, FILE));
  } catch {
    // The import reports what is wrong with the folder.
    await rm(temporary, { force: true }).catch(() => {});
  }
}
