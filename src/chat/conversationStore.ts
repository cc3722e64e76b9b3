/**
 * The conversations of a workspace, and the question that is being written, as they are kept across reloads: a bounded number of bounded size, written at a modest
 * rate while an answer streams. Knows no running request; conversation.ts does.
 */
import type { SavedConversation } from './conversation.ts';

/** Where it is kept: the editor's workspace state, or a stand-in. */
export interface Memento {
  get(key: string): unknown;
  update(key: string, value: unknown): PromiseLike<void>;
}

const KEY = 'kvasir.chat.conversations';
const MAX_CONVERSATIONS = 40;
/** Characters of JSON; the workbench rewrites an extension's whole state each time. */
const MAX_CHARACTERS = 600_000;
const MAX_CHARACTERS_OF_ONE = 300_000;
/** Between two writes. */
const SAVE_MS = 1500;
/** Silence after which what is being typed is written. */
const PAUSE_MS = 1000;

interface Kept {
  current: string | null;
  /** What was being written to the next question. */
  draft: string;
  conversations: SavedConversation[];
}

export class ConversationStore {
  readonly #memento: Memento;
  /** Newest first. */
  #conversations: SavedConversation[];
  #current: string | null;
  #draft: string;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pause: ReturnType<typeof setTimeout> | undefined;

  constructor(memento: Memento) {
    this.#memento = memento;
    const kept = memento.get(KEY) as Partial<Kept> | undefined;
    this.#conversations = Array.isArray(kept?.conversations) ? kept.conversations.filter(isConversation) : [];
    this.#current = kept?.current ?? null;
    this.#draft = typeof kept?.draft === 'string' ? kept.draft : '';
  }

  /** All that have a question in them, newest first. */
  get all(): readonly SavedConversation[] {
    return this.#conversations;
  }

  /** The one that was shown last; undefined when that was an empty one. */
  get current(): SavedConversation | undefined {
    return this.#current === null ? undefined : this.find(this.#current);
  }

  find(id: string): SavedConversation | undefined {
    return this.#conversations.find((each) => each.id === id);
  }

  get draft(): string {
    return this.#draft;
  }

  /** A page keeps its own state, too, but that of a window in a browser is written once a minute. */
  set draft(text: string) {
    if (text === this.#draft) return;
    this.#draft = text;
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => void this.flush(), PAUSE_MS);
  }

  /** Which one is shown. */
  show(id: string): void {
    this.#current = id;
    this.#saveSoon();
  }

  /** Takes a conversation as it is now; one without turns is forgotten. What is `urgent` is written at once: a window that is reloaded asks nobody. */
  put(conversation: SavedConversation, urgent = false): void {
    this.#conversations = this.#conversations.filter(({ id }) => id !== conversation.id);
    if (conversation.turns.length) this.#conversations.unshift(conversation);
    this.#saveSoon();
    if (urgent) void this.flush();
  }

  delete(id: string): void {
    this.#conversations = this.#conversations.filter((each) => each.id !== id);
    this.#saveSoon();
  }

  /** Puts a deleted one back to its place among the others. */
  restore(conversation: SavedConversation): void {
    this.delete(conversation.id);
    const older = this.#conversations.findIndex(({ updatedAt }) => updatedAt <= conversation.updatedAt);
    this.#conversations.splice(older < 0 ? this.#conversations.length : older, 0, conversation);
  }

  /** Writes what has not been written. */
  async flush(): Promise<void> {
    if (this.#timer === undefined && this.#pause === undefined) return;
    clearTimeout(this.#timer);
    clearTimeout(this.#pause);
    this.#pause = undefined;
    this.#timer = undefined;
    this.#conversations = bounded(this.#conversations);
    const kept: Kept = { current: this.#current, draft: this.#draft, conversations: this.#conversations };
    // A copy: what is kept goes on changing while it is on its way to the disk.
    await this.#memento.update(KEY, structuredClone(kept));
  }

  #saveSoon(): void {
    this.#timer ??= setTimeout(() => void this.flush(), SAVE_MS);
  }
}

/** The newest that fit together, each without its oldest turns where it alone is too long. */
function bounded(conversations: readonly SavedConversation[]): SavedConversation[] {
  const kept: SavedConversation[] = [];
  let left = MAX_CHARACTERS;
  for (const conversation of conversations.slice(0, MAX_CONVERSATIONS)) {
    const short = shortened(conversation, Math.min(left, MAX_CHARACTERS_OF_ONE));
    if (!short) break;
    left -= JSON.stringify(short).length;
    kept.push(short);
  }
  return kept;
}

function shortened(conversation: SavedConversation, limit: number): SavedConversation | undefined {
  const sizes = conversation.turns.map((turn) => JSON.stringify(turn).length + 1);
  let size = sizes.reduce((sum, each) => sum + each, JSON.stringify({ ...conversation, turns: [] }).length);
  let first = 0;
  while (size > limit && first < sizes.length) {
    // With a question goes its answer.
    do size -= sizes[first++] as number;
    while (conversation.turns[first]?.role === 'assistant');
  }
  if (first === sizes.length) return undefined;
  return first === 0 ? conversation : { ...conversation, turns: conversation.turns.slice(first) };
}

function isConversation(value: unknown): value is SavedConversation {
  const { id, turns, createdAt, updatedAt } = (value ?? {}) as Partial<SavedConversation>;
  return typeof id === 'string' && Array.isArray(turns) && typeof createdAt === 'number' && typeof updatedAt === 'number';
}
