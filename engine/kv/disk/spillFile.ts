/**
 * The spill file: rows of contexts that are longer than memory, in one temporary file that ends with this process. Does
 * not know which rows these are.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writevSync,
} from 'node:fs';
import path from 'node:path';

/*
 * Reads and writes are synchronous: a piece takes a fraction of the time of computing its tokens, and the system caches
 * much of the file in free memory.
 *
 * The rows may be of conversations and unsaved text. So the file is encrypted with a key that is only in memory, and
 * removed as soon as it is open (on Windows when it is closed, or by the next process). Each piece is sealed
 * (AES-256-GCM), so that changed bits or the bytes of another piece are detected. This takes 0.14 ms per MB more than
 * encryption alone (0.50 instead of 0.36, in pieces of 209 kB); a CRC would take 0.27 more, SHA-256 as in segments
 * 0.78.
 */

/** File names of this process and of processes that died. */
export const SPILL_NAME = /^\.spill-[0-9a-f]{12}$/;
/** An older file was left by a process that died. */
const MAX_TEMPORARY_AGE_MS = 24 * 60 * 60_000;
const SEAL = 'aes-256-gcm';
/** Bytes of a piece in the file beyond its data: the authentication tag. */
export const SEAL_BYTES = 16;

/** Data did not come back from the file as it was written: the disk is at fault, or another process wrote there. */
export class LostRows extends Error {
  override readonly name = 'LostRows';
}

/** Why nothing more could be written: the cap of the file, a full disk, or another error of the system. */
export interface SpillFailure {
  readonly reason: 'cap' | 'full' | 'system';
  readonly folder: string;
  readonly maxBytes: number;
  /** Message of the system, with `full` and `system`. */
  readonly message: string;
}

/** Error codes of a full disk, or of a full quota. */
const FULL_CODES = new Set(['ENOSPC', 'EDQUOT']);

export interface SpilledPiece {
  readonly at: number;
  /** Bytes in the file, with SEAL_BYTES at the end. */
  readonly bytes: number;
  /** Number of the write. No two pieces are encrypted with the same one. */
  readonly serial: number;
}

export class SpillFile {
  readonly #folder: string;
  /** Cap, in bytes. */
  readonly maxBytes: number;
  /** Bytes of all pieces. */
  bytes = 0;
  /** Also used by CachedNodes to report lost rows. */
  readonly log: (line: string) => void;
  readonly #key = randomBytes(32);
  #file: { readonly fd: number; readonly name: string } | null = null;
  #end = 0;
  /** Free ranges in the file, ascending, never adjacent. */
  readonly #holes: { at: number; bytes: number }[] = [];
  #numWrites = 0;
  /** Why the last `put` failed. Null: it succeeded. */
  failure: SpillFailure | null = null;

  /** `folder` or its parent must exist. Nothing is written before the first piece. */
  constructor(folder: string, maxBytes: number, log: (line: string) => void) {
    this.#folder = folder;
    this.maxBytes = maxBytes;
    this.log = log;
  }

  /**
   * Writes a piece. Null: it does not fit under the cap or on the disk, or cannot be written; `failure` tells which.
   */
  put(data: Uint8Array): SpilledPiece | null {
    const bytes = data.length + SEAL_BYTES;
    const hole = this.#holes.find((each) => each.bytes >= bytes);
    if (!hole && this.#end + bytes > this.maxBytes) return this.#refused('cap', '');
    const piece = { at: hole?.at ?? this.#end, bytes, serial: this.#numWrites++ };
    try {
      this.#file ??= this.#open();
      // A disk that is nearly full takes only a part of it.
      if (writevSync(this.#file.fd, this.#sealed(data, piece.serial), piece.at) < bytes)
        return this.#refused('full', 'the disk is full');
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return this.#refused(FULL_CODES.has(code ?? '') ? 'full' : 'system', message);
    }
    this.failure = null;
    if (hole) {
      hole.at += bytes;
      hole.bytes -= bytes;
      if (hole.bytes === 0) this.#holes.splice(this.#holes.indexOf(hole), 1);
    } else this.#end += bytes;
    this.bytes += bytes;
    return piece;
  }

  /** @throws LostRows when the piece cannot be read, or is not as it was written. */
  read({ at, bytes, serial }: SpilledPiece): Uint8Array {
    const sealed = this.#bytes(at, bytes);
    const decipher = createDecipheriv(SEAL, this.#key, nonce(serial)).setAuthTag(sealed.subarray(-SEAL_BYTES));
    const data = decipher.update(sealed.subarray(0, -SEAL_BYTES));
    try {
      decipher.final();
    } catch {
      throw new LostRows(`${this.#folder}: the temporary file is damaged`);
    }
    return data;
  }

  free({ at, bytes }: SpilledPiece): void {
    this.bytes -= bytes;
    const next = this.#holes.findIndex((hole) => hole.at > at);
    const i = next < 0 ? this.#holes.length : next;
    this.#holes.splice(i, 0, { at, bytes });
    // Joins it with adjacent ranges.
    for (const first of [i, i - 1]) {
      const [hole, beside] = [this.#holes[first], this.#holes[first + 1]];
      if (!hole || !beside || hole.at + hole.bytes !== beside.at) continue;
      hole.bytes += beside.bytes;
      this.#holes.splice(first + 1, 1);
    }
    const last = this.#holes.at(-1);
    if (!last || last.at + last.bytes < this.#end) return;
    this.#end = last.at;
    this.#holes.pop();
    // Gives the space back to the disk. If that fails, it is given back later.
    try {
      if (this.bytes === 0 && this.#file) ftruncateSync(this.#file.fd, 0);
    } catch (error) {
      this.log(`${this.#folder}: ${(error as Error).message}`);
    }
  }

  close(): void {
    if (!this.#file) return;
    closeSync(this.#file.fd);
    rmSync(this.#file.name, { force: true });
    this.#file = null;
  }

  #refused(reason: SpillFailure['reason'], message: string): null {
    // Logged once per failure.
    if (reason !== 'cap' && (this.failure === null || this.failure.reason === 'cap'))
      this.log(`Rows of a long context cannot be written to ${this.#folder}: ${message}`);
    this.failure = { reason, folder: this.#folder, maxBytes: this.maxBytes, message };
    return null;
  }

  #open(): { fd: number; name: string } {
    this.#makeFolder();
    for (const name of readdirSync(this.#folder)) {
      const old = path.join(this.#folder, name);
      if (
        SPILL_NAME.test(name) &&
        Date.now() - (statSync(old, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY) >
          MAX_TEMPORARY_AGE_MS
      )
        rmSync(old, { force: true });
    }
    const name = path.join(this.#folder, `.spill-${randomBytes(6).toString('hex')}`);
    const fd = openSync(name, 'wx+', 0o600);
    if (process.platform !== 'win32') rmSync(name);
    return { fd, name };
  }

  /** The disk tier has made the folder, but another process may have removed it since. */
  #makeFolder(): void {
    try {
      mkdirSync(this.#folder, 0o700);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }

  #bytes(at: number, length: number): Uint8Array {
    if (!this.#file) throw new Error('Rows are read from a temporary file that is closed.');
    const bytes = new Uint8Array(length);
    let numRead: number;
    try {
      numRead = readSync(this.#file.fd, bytes, 0, length, at);
    } catch (error) {
      const { syscall, message } = error as NodeJS.ErrnoException;
      // An error of the system means lost rows; any other error is a bug.
      throw syscall === undefined ? error : new LostRows(`${this.#folder}: ${message}`);
    }
    if (numRead < length) throw new LostRows(`${this.#folder}: the temporary file is shorter than it was`);
    return bytes;
  }

  /** Encrypted data and tag, in the order of the file. */
  #sealed(data: Uint8Array, serial: number): [Uint8Array, Uint8Array] {
    const cipher = createCipheriv(SEAL, this.#key, nonce(serial));
    const encrypted = cipher.update(data);
    cipher.final();
    return [encrypted, cipher.getAuthTag()];
  }
}

function nonce(serial: number): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeBigUInt64BE(BigInt(serial));
  return bytes;
}
