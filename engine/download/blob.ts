/**
 * Brings one file of the hub into its blob: continues the part on disk, hashes all of it, and gives the blob its name
 * only when size and hash are right. Tries again after a cut. The caller holds the lock of the file.
 */
import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { reasonOf } from '../protocol/errors.ts';
import { type Held, pause } from './fileLock.ts';
import type { Hub, HubFile } from './hub.ts';
import { DownloadError } from './problem.ts';
import { MAX_SILENCE_MS } from './waiting.ts';

/** Attempts in a row that bring nothing new. */
const MAX_ATTEMPTS = 5;
const FIRST_PAUSE_MS = 1000;
const READ_BYTES = 1 << 20;
/** A file system answers so that does not know the operation. */
const UNSUPPORTED = ['EINVAL', 'ENOTSUP', 'ENOSYS'];

export interface Transfer {
  hub: Hub;
  repository: string;
  commit: string;
  file: HubFile;
  /** Paths of the blob and of its part. */
  blob: string;
  part: string;
  held: Held;
  signal: AbortSignal;
  /** Bytes of the file that are here, after each change; `state`: what is being done. */
  onBytes(doneBytes: number, state: 'loading' | 'checking' | 'retrying'): void;
  /** Time before the second attempt; it doubles after each. */
  firstPauseMs?: number;
}

/** The open part, and the hash of its first `at` bytes. */
interface Part {
  handle: FileHandle;
  hash: Hash;
  at: number;
  etag: string | undefined;
}

/** @throws DownloadError, or the signal's reason */
export async function fetchBlob(transfer: Transfer): Promise<void> {
  const { file, blob, part: name } = transfer;
  const part = await openPart(transfer);
  try {
    await fill(part, transfer);
    await flush(part, transfer);
  } catch (error) {
    await part.handle.close().catch(() => {});
    if (error instanceof DownloadError && error.problem.kind === 'changed') await removePart(part, transfer);
    throw error;
  }
  if (part.hash.digest('hex') !== file.hash) {
    await removePart(part, transfer);
    throw new DownloadError({ kind: 'wrongHash', file: file.path });
  }
  if (!transfer.held.isOurs()) throw new DownloadError({ kind: 'taken', file: file.path });
  try {
    await rename(name, blob);
    await rm(etagFile(transfer), { force: true });
  } catch (error) {
    throw diskError(error, transfer);
  }
}

/** Only what the disk has taken may get the blob's name. */
async function flush({ handle }: Part, transfer: Transfer): Promise<void> {
  try {
    await handle.sync().catch((error: NodeJS.ErrnoException) => {
      if (!UNSUPPORTED.includes(error.code ?? '')) throw error;
    });
    await handle.close();
  } catch (error) {
    throw diskError(error, transfer);
  }
}

async function openPart(transfer: Transfer): Promise<Part> {
  const { file, part: name, onBytes, signal } = transfer;
  let handle: FileHandle;
  try {
    // Neither truncates nor appends: each piece is written at its own place.
    handle = await open(name, 'r+').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      return open(name, 'w+');
    });
  } catch (error) {
    throw diskError(error, transfer);
  }
  try {
    const part: Part = { handle, hash: newHash(file), at: 0, etag: undefined };
    const { size } = await handle.stat();
    if (size > file.size) await handle.truncate(0);
    else if (size > 0) {
      part.etag = (await readFile(etagFile(transfer), 'utf8').catch(() => '')) || undefined;
      const buffer = Buffer.allocUnsafe(READ_BYTES);
      while (part.at < size) {
        signal.throwIfAborted();
        const { bytesRead } = await handle.read(buffer, 0, Math.min(READ_BYTES, size - part.at), part.at);
        if (bytesRead === 0) break;
        part.hash.update(buffer.subarray(0, bytesRead));
        part.at += bytesRead;
        onBytes(part.at, 'checking');
      }
    }
    return part;
  } catch (error) {
    await handle.close().catch(() => {});
    throw signal.aborted ? signal.reason : diskError(error, transfer);
  }
}

/** Loads what is missing. Starts the count of attempts again whenever more is here than ever before. */
async function fill(part: Part, transfer: Transfer): Promise<void> {
  const { file, signal, onBytes, firstPauseMs = FIRST_PAUSE_MS } = transfer;
  let most = part.at;
  for (let attempt = 1; part.at < file.size || attempt === 1; attempt++) {
    try {
      if (part.at < file.size) await load(part, transfer);
    } catch (error) {
      if (signal.aborted || !mayPass(error)) throw error;
      if (part.at > most) [attempt, most] = [1, part.at];
      // Without a byte of it there is nothing to continue.
      const isHopeless = part.at === 0 && attempt > 1 && error.problem.kind === 'unreachable';
      if (attempt === MAX_ATTEMPTS || isHopeless) throw error;
      onBytes(part.at, 'retrying');
      await pause(firstPauseMs * 2 ** (attempt - 1), signal);
    }
  }
}

const mayPass = (error: unknown): error is DownloadError =>
  error instanceof DownloadError && ['unreachable', 'cut', 'busy'].includes(error.problem.kind);

async function load(part: Part, transfer: Transfer): Promise<void> {
  const { hub, file, signal, onBytes } = transfer;
  const response = await hub.open(transfer, file, part.at, part.etag, signal);
  if (response.status === 416 || (response.status === 206 && !continues(response, part.at, file.size))) {
    // The other side has another file there. All of it is loaded next, and its hash decides.
    await response.body?.cancel();
    const cut = cutAt(part, file);
    await restart(part, transfer);
    throw cut;
  }
  // All of it, because it has changed, or because parts are not served.
  if (response.status === 200 && part.at > 0) await restart(part, transfer);
  await keepEtag(part, response, transfer);
  const reader = (response.body ?? new Blob([]).stream()).getReader() as ReadableStreamDefaultReader<Uint8Array>;
  try {
    while (true) {
      const { done, value } = await withoutSilence(reader, signal).catch(() => {
        signal.throwIfAborted();
        throw cutAt(part, file);
      });
      if (done) break;
      if (part.at + value.length > file.size) throw new DownloadError({ kind: 'changed', file: file.path });
      await write(part, value, transfer);
      onBytes(part.at, 'loading');
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
  if (part.at < file.size) throw cutAt(part, file);
}

const cutAt = ({ at }: Part, { path: name, size }: HubFile): DownloadError =>
  new DownloadError({ kind: 'cut', file: name, doneBytes: at, totalBytes: size });

/** "bytes 100-199/200" */
function continues(response: Response, from: number, size: number): boolean {
  const [, first, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(response.headers.get('content-range') ?? '') ?? [];
  return Number(first) === from && (total === '*' || Number(total) === size);
}

/** @throws an Error after a minute without a piece */
async function withoutSilence(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal: AbortSignal,
): Promise<{ done: true; value?: undefined } | { done: false; value: Uint8Array }> {
  let stop = () => {};
  const silence = new Promise<never>((_, reject) => {
    const timer = setTimeout(() => reject(new Error('ETIMEDOUT')), MAX_SILENCE_MS);
    const abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    stop = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    };
  });
  try {
    signal.throwIfAborted();
    return (await Promise.race([reader.read(), silence])) as Awaited<ReturnType<typeof withoutSilence>>;
  } finally {
    stop();
  }
}

async function write(part: Part, bytes: Uint8Array, transfer: Transfer): Promise<void> {
  if (!transfer.held.isOurs()) throw new DownloadError({ kind: 'taken', file: transfer.file.path });
  try {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await part.handle.write(bytes, done, bytes.length - done, part.at + done);
      done += bytesWritten;
    }
  } catch (error) {
    throw diskError(error, transfer);
  }
  part.hash.update(bytes);
  part.at += bytes.length;
}

/** From the first byte again. */
async function restart(part: Part, transfer: Transfer): Promise<void> {
  await part.handle.truncate(0);
  Object.assign(part, { hash: newHash(transfer.file), at: 0, etag: undefined });
  await rm(etagFile(transfer), { force: true });
}

/** Keeps a strong ETag for a later run; a weak one is of no use for parts. */
async function keepEtag(part: Part, response: Response, transfer: Transfer): Promise<void> {
  const etag = response.headers.get('etag') ?? '';
  if (response.status !== 200 || !/^"[^"\r\n]*"$/.test(etag)) return;
  part.etag = etag;
  await writeFile(etagFile(transfer), etag).catch((error: unknown) => {
    throw diskError(error, transfer);
  });
}

async function removePart(part: Part, transfer: Transfer): Promise<void> {
  await part.handle.close().catch(() => {});
  for (const name of [transfer.part, etagFile(transfer)]) await rm(name, { force: true }).catch(() => {});
}

const etagFile = ({ blob }: Transfer): string => `${blob}.kvasir.etag`;

function newHash({ algorithm, size }: HubFile): Hash {
  return algorithm === 'sha256' ? createHash('sha256') : createHash('sha1').update(`blob ${size}\0`);
}

/** An error of the file system as one of the download. */
export function diskError(error: unknown, { blob }: { blob: string }): Error {
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof DownloadError || typeof code !== 'string') return error as Error;
  const folder = path.dirname(path.dirname(blob));
  return new DownloadError(
    code === 'ENOSPC' || code === 'EDQUOT'
      ? { kind: 'diskFull', folder }
      : { kind: 'cannotWrite', folder, reason: reasonOf(error) },
  );
}
