/**
 * Summaries that have been computed, by what they were made from: the model, the question and the text itself. Bounded,
 * and kept with the workspace, so that a second run computes only what has changed.
 */
import { createHash } from 'node:crypto';
import type * as vscode from 'vscode';

const STORED = 'kvasir.summaries';
const MOST_ENTRIES = 1000;
const MOST_CHARACTERS = 400_000;

export class SummaryCache {
  readonly #memory: vscode.Memento;
  /** What stands for the model and the wording of its questions. */
  readonly #model: () => string;
  /** Least recently used first. */
  #entries: Map<string, string> | undefined;
  #numCharacters = 0;

  constructor(memory: vscode.Memento, model: () => string) {
    this.#memory = memory;
    this.#model = model;
  }

  get(question: readonly string[], text: string): string | undefined {
    const key = this.#key(question, text);
    const entries = this.#read();
    const found = entries.get(key);
    if (found === undefined) return undefined;
    entries.delete(key);
    entries.set(key, found);
    return found;
  }

  /** Kept in memory; `save` keeps it across windows. */
  set(question: readonly string[], text: string, summary: string): void {
    const entries = this.#read();
    this.#put(entries, this.#key(question, text), summary);
    for (const [oldest, value] of entries) {
      if (entries.size <= MOST_ENTRIES && this.#numCharacters <= MOST_CHARACTERS) break;
      entries.delete(oldest);
      this.#numCharacters -= value.length;
    }
  }

  /** After the last of a row of `set`. */
  async save(): Promise<void> {
    if (this.#entries) await this.#memory.update(STORED, [...this.#entries]);
  }

  async clear(): Promise<void> {
    this.#entries = new Map();
    this.#numCharacters = 0;
    await this.#memory.update(STORED, undefined);
  }

  #read(): Map<string, string> {
    if (this.#entries) return this.#entries;
    this.#entries = new Map();
    const stored = this.#memory.get<unknown>(STORED);
    for (const entry of Array.isArray(stored) ? stored : []) if (Array.isArray(entry) && typeof entry[0] === 'string' && typeof entry[1] === 'string') this.#put(this.#entries, entry[0], entry[1]);
    return this.#entries;
  }

  #put(entries: Map<string, string>, key: string, summary: string): void {
    this.#numCharacters += summary.length - (entries.get(key)?.length ?? 0);
    entries.delete(key);
    entries.set(key, summary);
  }

  #key(question: readonly string[], text: string): string {
    return createHash('sha256').update(JSON.stringify([this.#model(), question, text])).digest('base64').slice(0, 24);
  }
}
