/**
 * Downloads a chosen model into the cache of the Hugging Face tools: asks for the space, brings each file under its
 * lock, and publishes the snapshot when all are whole. Asks nobody and shows nothing.
 */
import { mkdir, statfs } from 'node:fs/promises';
import path from 'node:path';
import { diskError, fetchBlob } from './blob.ts';
import type { Choice } from './choices.ts';
import { withLock } from './fileLock.ts';
import type { Hub, HubFile, Listing } from './hub.ts';
import { CachedRepository } from './hubCache.ts';
import { DownloadError } from './problem.ts';

export interface Progress {
  doneBytes: number;
  totalBytes: number;
  /** `checking`: what is here is hashed; `waiting`: another process loads the same file; `retrying`: after a cut. */
  state: 'loading' | 'checking' | 'waiting' | 'retrying';
}

export interface DownloadOptions {
  hub: Hub;
  /** The folder of the cache (hubFolder). */
  folder: string;
  listing: Listing;
  /** What `listing` was asked for, such as "main". */
  revision: string;
  choice: Choice;
  signal: AbortSignal;
  onProgress(progress: Progress): void;
  /** Time before the second attempt after a cut; it doubles after each. */
  firstPauseMs?: number;
}

/** Left free on the disk. */
const MIN_FREE_BYTES = 64e6;

/** @returns the model's folder or GGUF file. @throws DownloadError, or the signal's reason */
export async function download(options: DownloadOptions): Promise<string> {
  const { folder, listing, revision, choice, signal } = options;
  const { commit } = listing;
  const cache = new CachedRepository(folder, listing.repository);
  const inCache = { blob: path.join(cache.blobs, 'any') };
  try {
    await mkdir(cache.blobs, { recursive: true });
    await checkSpace(cache, choice.files);
    let before = 0;
    for (const file of choice.files) {
      signal.throwIfAborted();
      await bring(file, cache, before, options);
      before += file.size;
      options.onProgress({ doneBytes: before, totalBytes: choice.bytes, state: 'loading' });
    }
    await cache.publish(commit, revision, choice.files);
  } catch (error) {
    throw signal.aborted ? signal.reason : diskError(error, inCache);
  }
  return path.join(cache.snapshot(commit), ...choice.path.split('/'));
}

/** Bytes of a choice that are here already. */
export async function bytesHere(folder: string, repository: string, { files }: Choice): Promise<number> {
  const cache = new CachedRepository(folder, repository);
  const here = await Promise.all(files.map((file) => cache.bytesHere(file)));
  return here.reduce((sum, bytes) => sum + bytes, 0);
}

async function checkSpace(cache: CachedRepository, files: readonly HubFile[]): Promise<void> {
  let missing = 0;
  for (const file of files) missing += file.size - (await cache.bytesHere(file));
  // Some network file systems do not tell.
  const found = await statfs(cache.blobs).catch(() => null);
  if (!found || missing === 0) return;
  const freeBytes = found.bavail * found.bsize;
  const neededBytes = missing + MIN_FREE_BYTES;
  if (freeBytes > 0 && freeBytes < neededBytes)
    throw new DownloadError({ kind: 'noSpace', folder: cache.folder, neededBytes, freeBytes });
}

async function bring(
  file: HubFile,
  cache: CachedRepository,
  before: number,
  { hub, listing, choice, signal, onProgress, firstPauseMs }: DownloadOptions,
): Promise<void> {
  if (await cache.isWhole(file)) return;
  const tell = (doneBytes: number, state: Progress['state']) =>
    onProgress({ doneBytes: before + doneBytes, totalBytes: choice.bytes, state });
  const onWait = async () => tell(await cache.bytesHere(file), 'waiting');
  await withLock(`${cache.blob(file)}.kvasir.lock`, signal, onWait, async (held) => {
    // Another process may have brought it meanwhile.
    if (await cache.isWhole(file)) return;
    const { repository, commit } = listing;
    const place = { blob: cache.blob(file), part: cache.part(file) };
    await fetchBlob({ hub, repository, commit, file, ...place, held, signal, onBytes: tell, firstPauseMs });
  });
}
