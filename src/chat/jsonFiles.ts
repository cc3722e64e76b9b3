/**
 * What is too large for the workspace state, which the workbench rewrites whole at each change of anything in it: a file
 * of JSON for each key in the extension's own folder of the workspace. A file is replaced as a whole, so that it is never
 * half written. What the workspace state still holds is read from there until it has been written here.
 */
import { readFileSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Memento } from './conversationStore.ts';

export class JsonFiles implements Memento {
  readonly #folder: string;
  readonly #before: Memento;
  readonly #onFailure: (reason: string) => void;
  /** By key, what is to be written next, and the writing under way. */
  readonly #next = new Map<string, string>();
  readonly #writing = new Map<string, Promise<void>>();
  #failed = false;

  /** `onFailure` hears of the first of a row of writes that fail: a full disk stays full for a while. */
  constructor(folder: string, before: Memento, onFailure: (reason: string) => void) {
    this.#folder = folder;
    this.#before = before;
    this.#onFailure = onFailure;
  }

  get(key: string): unknown {
    try {
      return JSON.parse(readFileSync(this.#fileOf(key), 'utf8'));
    } catch {
      // Not written yet, or damaged by others.
      return this.#before.get(key);
    }
  }

  /** Settles when the value, or a later one, is on the disk or could not be written; never rejects. */
  update(key: string, value: unknown): Promise<void> {
    this.#next.set(key, JSON.stringify(value));
    let writing = this.#writing.get(key);
    if (!writing) {
      writing = this.#write(key).finally(() => this.#writing.delete(key));
      this.#writing.set(key, writing);
    }
    return writing;
  }

  /** What has come meanwhile, too; of several values the last one. */
  async #write(key: string): Promise<void> {
    const file = this.#fileOf(key);
    const temporary = `${file}.${process.pid}.tmp`;
    for (let text = this.#next.get(key); text !== undefined; text = this.#next.get(key)) {
      this.#next.delete(key);
      try {
        await mkdir(this.#folder, { recursive: true });
        await writeFile(temporary, text);
        await rename(temporary, file);
        this.#failed = false;
        if (this.#before.get(key) !== undefined) await this.#before.update(key, undefined);
      } catch (error) {
        await rm(temporary, { force: true }).catch(() => {});
        if (!this.#failed) this.#onFailure(error instanceof Error ? error.message : String(error));
        this.#failed = true;
      }
    }
  }

  #fileOf(key: string): string {
    return path.join(this.#folder, `${key}.json`);
  }
}
