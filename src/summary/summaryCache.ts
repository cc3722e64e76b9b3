/**
 * A cache of summaries, keyed by what they were made from: model, question and text. Bounded, and stored with the
 * workspace, so that a second run computes only what has changed.
 */
import { createHash } from 'node:crypto';
import type * as vscode from 'vscode';

const STORED = 'kvasir.summaries';
const MAX_ENTRIES = 1000;
const MAX_CHARACTERS = 400_000;

export interface KnownSummary {
  text: string;
  /** Notes that are shown with it. */
  notes: readonly string[];
}

export class SummaryCache {
  readonly #memory: vscode.Memento;
  /** Identifies the model and the wording of its questions. */
  readonly #model: () => string;
  /** Least recently used first. */
  #entries: Map<string, KnownSummary> | undefined;
  #numCharacters = 0;

  constructor(memory: vscode.Memento, model: () => string) {
    this.#memory = memory;
    this.#model = model;
  }

  get(question: readonly string[], text: string): KnownSummary | undefined {
    const key = this.#key(question, text);
    const entries = this.#read();
    const found = entries.get(key);
    if (found === undefined) return undefined;
    entries.delete(key);
    entries.set(key, found);
    return found;
  }

  /** Kept in memory; `save` stores it for later windows. */
  set(question: readonly string[], text: string, summary: KnownSummary): void {
    const entries = this.#read();
    this.#put(entries, this.#key(question, text), summary);
    for (const [oldest, value] of entries) {
      if (entries.size <= MAX_ENTRIES && this.#numCharacters <= MAX_CHARACTERS) break;
      entries.delete(oldest);
      this.#numCharacters -= sizeOf(value);
    }
  }

  /** After the last of several `set`. */
  async save(): Promise<void> {
    if (this.#entries)
      await this.#memory.update(
        STORED,
        [...this.#entries].map(([key, { text, notes }]) => [key, text, ...notes]),
      );
  }

  async clear(): Promise<void> {
    this.#entries = new Map();
    this.#numCharacters = 0;
    await this.#memory.update(STORED, undefined);
  }

  #read(): Map<string, KnownSummary> {
    if (this.#entries) return this.#entries;
    this.#entries = new Map();
    const stored = this.#memory.get<unknown>(STORED);
    for (const entry of Array.isArray(stored) ? stored : [])
      if (isStored(entry)) this.#put(this.#entries, entry[0], { text: entry[1], notes: entry.slice(2) });
    return this.#entries;
  }

  #put(entries: Map<string, KnownSummary>, key: string, summary: KnownSummary): void {
    const before = entries.get(key);
    this.#numCharacters += sizeOf(summary) - (before ? sizeOf(before) : 0);
    entries.delete(key);
    entries.set(key, summary);
  }

  #key(question: readonly string[], text: string): string {
    return createHash('sha256')
      .update(JSON.stringify([this.#model(), question, text]))
      .digest('base64')
      .slice(0, 24);
  }
}

/** Key, summary, notes. */
function isStored(entry: unknown): entry is [string, string, ...string[]] {
  return Array.isArray(entry) && entry.length >= 2 && entry.every((part) => typeof part === 'string');
}

function sizeOf({ text, notes }: KnownSummary): number {
  return notes.reduce((sum, note) => sum + note.length, text.length);
}
