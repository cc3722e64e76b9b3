/**
 * Stores the conversations of a workspace and the draft across reloads. Bounded in number and size; writes at a limited
 * rate while an answer streams or the user types. Does not know running requests: conversation.ts does.
 */
import type { SavedConversation } from './conversation.ts';

/** The editor's workspace state, or a stand-in. */
export interface Memento {
  get(key: string): unknown;
  update(key: string, value: unknown): PromiseLike<void>;
}

const KEY = 'kvasir.chat.conversations';
/** Stored separately, so that a draft does not rewrite all conversations. */
const DRAFT_KEY = 'kvasir.chat.draft';
const MAX_CONVERSATIONS = 40;
/** Characters of JSON. The workbench rewrites an extension's whole state each time. */
const MAX_CHARACTERS = 600_000;
const MAX_CHARACTERS_OF_ONE = 300_000;
/** Minimum time between two writes. */
const SAVE_MS = 1500;

interface Kept {
  current: string | null;
  conversations: SavedConversation[];
}

export class ConversationStore {
  readonly #memento: Memento;
  /** Newest first. */
  #conversations: SavedConversation[];
  #current: string | null;
  #draft: string;
  /** Restored by the user, so they are not dropped for newer ones. */
  readonly #restored = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #draftTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(memento: Memento) {
    this.#memento = memento;
    const kept = memento.get(KEY) as Partial<Kept> | undefined;
    this.#conversations = Array.isArray(kept?.conversations) ? kept.conversations.filter(isConversation) : [];
    this.#current = kept?.current ?? null;
    const draft = memento.get(DRAFT_KEY);
    this.#draft = typeof draft === 'string' ? draft : '';
  }

  /** All conversations with a question, newest first. */
  get all(): readonly SavedConversation[] {
    return this.#conversations;
  }

  /** The conversation shown last; undefined if it was empty. */
  get current(): SavedConversation | undefined {
    return this.#current === null ? undefined : this.find(this.#current);
  }

  find(id: string): SavedConversation | undefined {
    return this.#conversations.find((each) => each.id === id);
  }

  get draft(): string {
    return this.#draft;
  }

  /** A page keeps its own state, too, but a window in a browser writes that only once a minute. */
  set draft(text: string) {
    if (text === this.#draft) return;
    this.#draft = text;
    // The first key starts the timer, because a user may type a long question without a pause.
    this.#draftTimer ??= setTimeout(() => void this.#writeDraft(), SAVE_MS);
  }

  /** Records which conversation is shown. */
  show(id: string): void {
    this.#current = id;
    this.#saveSoon();
  }

  /**
   * Stores a conversation in its current state; removes one without turns. `urgent` writes at once, because a reload
   * gives no time.
   */
  put(conversation: SavedConversation, urgent = false): void {
    this.#conversations = this.#conversations.filter(({ id }) => id !== conversation.id);
    if (conversation.turns.length) this.#conversations.unshift(conversation);
    this.#saveSoon();
    if (urgent) void this.flush();
  }

  delete(id: string): void {
    this.#restored.delete(id);
    this.#conversations = this.#conversations.filter((each) => each.id !== id);
    this.#saveSoon();
  }

  /** Restores a deleted conversation at its old position, at once. */
  restore(conversation: SavedConversation): void {
    this.delete(conversation.id);
    const older = this.#conversations.findIndex(({ updatedAt }) => updatedAt <= conversation.updatedAt);
    this.#conversations.splice(older < 0 ? this.#conversations.length : older, 0, conversation);
    this.#restored.add(conversation.id);
    void this.flush();
  }

  /** Writes what has not been written. */
  async flush(): Promise<void> {
    await Promise.all([this.#writeConversations(), this.#writeDraft()]);
  }

  async #writeConversations(): Promise<void> {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#conversations = bounded(this.#conversations, ({ id }) => id === this.#current || this.#restored.has(id));
    const kept: Kept = { current: this.#current, conversations: this.#conversations };
    // A copy, because the original may change while it is being written.
    await this.#memento.update(KEY, structuredClone(kept));
  }

  async #writeDraft(): Promise<void> {
    if (this.#draftTimer === undefined) return;
    clearTimeout(this.#draftTimer);
    this.#draftTimer = undefined;
    await this.#memento.update(DRAFT_KEY, this.#draft);
  }

  #saveSoon(): void {
    this.#timer ??= setTimeout(() => void this.#writeConversations(), SAVE_MS);
  }
}

/**
 * Selects the conversations that fit together: the `wanted` ones, then the newest. A conversation that is too long
 * alone loses its oldest turns.
 */
function bounded(
  conversations: readonly SavedConversation[],
  wanted: (conversation: SavedConversation) => boolean,
): SavedConversation[] {
  const kept = new Map<string, SavedConversation>();
  let left = MAX_CHARACTERS;
  const byWorth = [...conversations.filter(wanted), ...conversations.filter((each) => !wanted(each))];
  for (const conversation of byWorth.slice(0, MAX_CONVERSATIONS)) {
    const short = shortened(conversation, Math.min(left, MAX_CHARACTERS_OF_ONE));
    if (!short) break;
    left -= JSON.stringify(short).length;
    kept.set(short.id, short);
  }
  return conversations.flatMap(({ id }) => kept.get(id) ?? []);
}

function shortened(conversation: SavedConversation, limit: number): SavedConversation | undefined {
  const sizes = conversation.turns.map((turn) => JSON.stringify(turn).length + 1);
  let size = sizes.reduce((sum, each) => sum + each, JSON.stringify({ ...conversation, turns: [] }).length);
  let first = 0;
  while (size > limit && first < sizes.length) {
    // A question is removed together with its answer.
    do size -= sizes[first++] as number;
    while (conversation.turns[first]?.role === 'assistant');
  }
  if (first === sizes.length) return undefined;
  return first === 0 ? conversation : { ...conversation, turns: conversation.turns.slice(first) };
}

function isConversation(value: unknown): value is SavedConversation {
  const { id, turns, createdAt, updatedAt } = (value ?? {}) as Partial<SavedConversation>;
  return (
    typeof id === 'string' && Array.isArray(turns) && typeof createdAt === 'number' && typeof updatedAt === 'number'
  );
}
