/**
 * Rows of contexts that are longer than memory, in one temporary file, for the life of this process. Reads and writes
 * are synchronous: a
 * piece takes a fraction of the time of computing its tokens, and the system caches much of the file in memory that is
 * otherwise free.
 *
 * The rows may be of conversations and unsaved text. So the file is encrypted with a key that only memory has, and
 * removed as soon as it
 * is open, where the system allows that (on Windows: when it is closed, or by the next process). Each piece is sealed
 * (AES-256-GCM): a
 * piece with a changed bit, or another piece's bytes, is not taken for rows. Sealing takes 0.14 ms per MB more than
 * encryption alone
 * (0.50 after 0.36, pieces of 209 kB; a CRC beside it 0.27, SHA-256 as in segments 0.78).
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

/** Where the system keeps it: what a process that died has left. */
export const SPILL_NAME = /^\.spill-[0-9a-f]{12}$/;
/** One so old that is still there is of a process that died. */
const STALE_MS = 24 * 60 * 60_000;
const SEAL = 'aes-256-gcm';
/** Bytes of a piece in the file beyond its data: they tell whether it is as it was written. */
export const SEAL_BYTES = 16;

/** What was put into the file does not come back as it was: the disk is at fault, or who else wrote there. */
export class LostRows extends Error {
  override readonly name = 'LostRows';
}

/** Why the file took no more: its cap, a disk that is full, or what else the system said. */
export interface SpillFailure {
  readonly reason: 'cap' | 'full' | 'system';
  readonly folder: string;
  readonly maxBytes: number;
  /** The system's, with `full` and `system`. */
  readonly message: string;
}

/** What the system says of a disk, or a user's share of one, that is full. */
const FULL_CODES = new Set(['ENOSPC', 'EDQUOT']);

export interface SpilledPiece {
  readonly at: number;
  /** In the file, SEAL_BYTES of them at its end. */
  readonly bytes: number;
  /** Which write it was: no two are sealed alike. */
  readonly serial: number;
}

export class SpillFile {
  readonly #folder: string;
  /** Cap. */
  readonly maxBytes: number;
  /** Of all pieces. */
  bytes = 0;
  /** Whoever has rows here tells what becomes of those that are lost. */
  readonly log: (line: string) => void;
  readonly #key = randomBytes(32);
  #file: { readonly fd: number; readonly name: string } | null = null;
  #end = 0;
  /** Where pieces were, in order, none beside another. */
  readonly #holes: { at: number; bytes: number }[] = [];
  #numWrites = 0;
  /** Of the last `put`; null: it was none. */
  failure: SpillFailure | null = null;

  /** @param folder is there, or at least the one above it. Nothing is written before the first piece. */
  constructor(folder: string, maxBytes: number, log: (line: string) => void) {
    this.#folder = folder;
    this.maxBytes = maxBytes;
    this.log = log;
  }

  /** null: there is no room for it, under the cap or on the disk, or it cannot be written; `failure` says which. */
  put(data: Uint8Array): SpilledPiece | null {
    const bytes = data.length + SEAL_BYTES;
    const hole = this.#holes.find((each) => each.bytes >= bytes);
    if (!hole && this.#end + bytes > this.maxBytes) return this.#refused('cap', '');
    const piece = { at: hole?.at ?? this.#end, bytes, serial: this.#numWrites++ };
    try {
      this.#file ??= this.#open();
      // A disk that fills up takes a part of it.
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

  /** @throws LostRows when it cannot be read, or is not as it was written. */
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
    // With its neighbours it is one.
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
    // The disk has it back; one that fails keeps it a while longer.
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
    // The log has it once.
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
        Date.now() - (statSync(old, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY) > STALE_MS
      )
        rmSync(old, { force: true });
    }
    const name = path.join(this.#folder, `.spill-${randomBytes(6).toString('hex')}`);
    const fd = openSync(name, 'wx+', 0o600);
    if (process.platform !== 'win32') rmSync(name);
    return { fd, name };
  }

  /** The disk tier has made it, and those above; somebody may have removed it since. */
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
      // The system's answer; anything else is a fault of ours.
      throw syscall === undefined ? error : new LostRows(`${this.#folder}: ${message}`);
    }
    if (numRead < length) throw new LostRows(`${this.#folder}: the temporary file is shorter than it was`);
    return bytes;
  }

  /** As it lies in the file, in two parts. */
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
