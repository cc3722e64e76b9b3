/**
 * The chat behind its view: several conversations, one of them shown, the context of the next question, and the user's
 * actions. A conversation continues while another one is shown. Does not talk to the page: chatView.ts does.
 */
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import type { Task } from '../../engine/protocol/tasks.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { shownNote } from '../models/locate.ts';
import { ChatContext, type ChipSizes } from './chatContext.ts';
import type { ContextRef, Meter, UserTurn } from './chatMessages.ts';
import { openFiles } from './contextRefs.ts';
import { type Ask, Conversation, type ConversationChange, type SavedConversation } from './conversation.ts';
import { ConversationStore } from './conversationStore.ts';
import { type Measured, TokenMeter } from './meter.ts';
import { QuestionTasks } from './questionTask.ts';
import { parseSlash } from '../../engine/protocol/slash.ts';

/** When a complete answer is asked for again, a different one is wanted. */
const OTHER_ANSWER = { temperature: 0.8, topP: 0.95 };

/** What the view has to draw again. */
export type ChatChange = { type: 'conversation' } | { type: 'meter' } | Exclude<ConversationChange, { type: 'turns' }>;

export class ChatController implements vscode.Disposable {
  readonly context: ChatContext;
  readonly #host: EngineHost;
  readonly #settings: Settings;
  readonly #tasks: QuestionTasks;
  readonly #store: ConversationStore;
  readonly #meter: TokenMeter;
  readonly #changed = new vscode.EventEmitter<ChatChange>();
  readonly #subscriptions: vscode.Disposable[];
  /** The shown conversation and those with a running answer. */
  readonly #live = new Map<string, Conversation>();
  #current: Conversation;
  #disposed = false;
  /** Stays shown while an answer is being written. */
  #lastMeasured: Measured | null = null;
  meter: Meter | null = null;
  sizes: ChipSizes = new Map();

  constructor(workspaceState: vscode.Memento, host: EngineHost, mirror: DocumentMirror, settings: Settings) {
    this.#host = host;
    this.#settings = settings;
    this.context = new ChatContext(settings);
    this.#tasks = new QuestionTasks({ client: host.client, mirror, settings, editor: () => this.context.editor });
    this.#store = new ConversationStore(workspaceState);
    this.#current = this.#open(this.#store.current ?? empty());
    this.#meter = new TokenMeter({
      measure: () => this.#measure(),
      onResult: (meter, sizes) => {
        this.meter = meter;
        this.sizes = sizes;
        this.#changed.fire({ type: 'meter' });
      },
      speech: speech(),
    });
    this.#subscriptions = [
      this.context,
      this.context.onDidChange(() => this.#meter.changed()),
      host.onState(({ kind }) => {
        // Progress events come many times a second.
        if (kind !== 'starting') this.#meter.changed();
      }),
    ];
  }

  get onDidChange(): vscode.Event<ChatChange> {
    return this.#changed.event;
  }

  get current(): Conversation {
    return this.#current;
  }

  /** Newest first, including the running ones. */
  get conversations(): readonly SavedConversation[] {
    return this.#store.all;
  }

  /** The draft of the next question. */
  get draft(): string {
    return this.#store.draft;
  }

  set draft(text: string) {
    this.#store.draft = text;
    this.#meter.changed();
  }

  /** While the view is hidden, nothing is counted. */
  watch(watched: boolean): void {
    this.context.watch(watched);
    this.#meter.watch(watched);
  }

  /** Returns false and does nothing while another question is being answered. */
  async ask(text: string, refs: readonly ContextRef[] = this.context.refs): Promise<boolean> {
    if (this.#current.asking) return false;
    const question = text.trim();
    if (question) await this.#current.run(this.#askOf(question, [...refs], false));
    return true;
  }

  /** Asks the last question again. */
  async regenerate(anyway = false): Promise<void> {
    const conversation = this.#current;
    const answer = conversation.turns.at(-1);
    const question = conversation.turns.findLast((turn) => turn.role === 'user');
    if (!question || answer?.role !== 'assistant' || conversation.asking) return;
    const other = answer.state === 'done' && answer.text !== '' && !answer.notes.length && !answer.offers;
    const refused = answer.refused !== undefined;
    const again = conversation.askOf(question.id);
    conversation.dropFrom(question.id);
    // A question that lacked a file is asked again with what is attached now.
    const refs = answer.offers ? this.context.refs : (question as UserTurn).context;
    // An answer of the model is asked for again, whatever its size.
    const isForced = (anyway && refused) || again?.anyway === true || answer.footer !== undefined;
    const ask = again?.priority === 'summary' ? again : this.#askOf(question.text, refs, isForced);
    await conversation.run(other ? { ...ask, sampling: { ...ask.sampling, ...OTHER_ANSWER } } : ask);
  }

  /** Attaches an open file, which the last question lacked, and asks it again. */
  async attachAndAsk(ref: ContextRef): Promise<void> {
    const last = this.#current.turns.at(-1);
    this.context.add([ref]);
    if (last?.role === 'assistant' && last.offers) await this.regenerate();
  }

  /**
   * Asks an earlier question in other words. Returns false and does nothing while a question above it is being
   * answered.
   */
  async resend(id: string, text: string): Promise<boolean> {
    const conversation = this.#current;
    if (conversation.askingAbove(id)) return false;
    const dropped = text.trim() ? conversation.dropFrom(id) : undefined;
    if (dropped)
      await conversation.run(
        this.#askOf(
          text.trim(),
          dropped.context.filter(({ symbol }) => symbol === undefined),
          false,
        ),
      );
    return true;
  }

  /** Adds a turn that is answered by `task`, which is built when the request is sent. */
  async run(question: string, context: ContextRef[], task: () => Task): Promise<void> {
    await this.#current.run({
      question,
      context,
      prepare: async () => ({ task }),
      priority: 'summary',
      ...this.#sampling(),
    });
  }

  stop(): void {
    this.#current.stop();
  }

  /** Shows an empty conversation. The shown one is kept. */
  newChat(): void {
    if (this.#current.turns.length) this.show(empty());
  }

  show(saved: SavedConversation): void {
    const before = this.#current;
    this.#current = this.#live.get(saved.id) ?? this.#open(saved);
    if (before !== this.#current && !before.busy) this.#live.delete(before.id);
    this.#store.show(saved.id);
    this.#announce();
  }

  /**
   * Removes a conversation and stops its running answer. Returns a function that restores it, and shows it if it was
   * shown; undefined for an empty one.
   */
  delete(id: string): (() => void) | undefined {
    const live = this.#live.get(id);
    const saved = live?.saved ?? this.#store.find(id);
    const shown = live === this.#current;
    // From here on nothing listens to it.
    this.#live.delete(id);
    live?.stop();
    this.#store.delete(id);
    if (shown) {
      this.#current = this.#open(empty());
      this.#store.show(this.#current.id);
      this.#announce();
    }
    return saved?.turns.length ? () => this.#restore(live ?? saved, shown) : undefined;
  }

  /** Writes what has not been written. */
  async dispose(): Promise<void> {
    this.#disposed = true;
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#meter.dispose();
    // Stored as they are: an answer that is being written counts as interrupted after the restart.
    const saved = this.#store.flush();
    const running = [...this.#live.values()];
    this.#live.clear();
    for (const conversation of running) conversation.stop();
    this.#changed.dispose();
    await saved;
  }

  #restore(deleted: Conversation | SavedConversation, shown: boolean): void {
    if (this.#disposed) return;
    const saved = deleted instanceof Conversation ? deleted.saved : deleted;
    // Its stopped answers may not have ended yet, and it remembers the questions.
    if (deleted instanceof Conversation && (shown || deleted.busy)) this.#live.set(saved.id, deleted);
    this.#store.restore(saved);
    if (shown) this.show(saved);
  }

  #open(saved: SavedConversation): Conversation {
    const conversation: Conversation = new Conversation(structuredClone(saved), {
      engine: this.#host.client,
      notes: {
        stopped: vscode.l10n.t('Stopped.'),
        interrupted: vscode.l10n.t('Interrupted: the window was reloaded or closed.'),
      },
      openFiles: () => openFiles(this.#settings.current.completion),
      modelName: () => (this.#host.client.state.kind === 'ready' ? this.#host.client.state.model.name : ''),
      modelNote: () =>
        this.#host.client.state.kind === 'ready' ? shownNote(this.#host.client.state.model.chatNote) : '',
      onChange: (change) => this.#follow(conversation, change),
    });
    this.#live.set(conversation.id, conversation);
    return conversation;
  }

  #follow(conversation: Conversation, change: ConversationChange): void {
    if (!this.#live.has(conversation.id)) return;
    if (conversation === this.#current) this.#store.show(conversation.id);
    this.#store.put(conversation.saved, change.type !== 'append');
    if (conversation !== this.#current) {
      if (!conversation.busy) this.#live.delete(conversation.id);
      return;
    }
    if (change.type === 'turns') this.#announce();
    else {
      this.#changed.fire(change);
      if (change.type === 'turn') this.#meter.changed();
    }
  }

  #announce(): void {
    this.#changed.fire({ type: 'conversation' });
    this.#meter.changed();
  }

  #askOf(question: string, context: ContextRef[], anyway: boolean): Ask {
    const prepare: Ask['prepare'] = async (history, about) => {
      // The question appears at once, because the language's extension may be slow to find the definition.
      const refs = parseSlash(question) ? await this.#tasks.contextFor(question, context) : context;
      if (refs !== context) about(refs);
      return this.#tasks.prepare(question, refs, history, anyway);
    };
    return { question, context, prepare, anyway, priority: 'chat', ...this.#sampling() };
  }

  #sampling(): { sampling?: { maxTokens: number } } {
    const { maxTokens } = this.#settings.current.chat;
    return maxTokens ? { sampling: { maxTokens } } : {};
  }

  async #measure(): Promise<Measured | null> {
    if (this.#current.busy && this.#host.client.state.kind === 'ready') return this.#lastMeasured;
    this.#lastMeasured = null;
    const asked = await this.#tasks.measure(this.draft.trim(), this.context.refs, this.#current.history());
    const size = asked && (await this.#host.client.measure(asked.task, this.#sampling().sampling));
    this.#lastMeasured = asked && size ? { size, owners: asked.gathered.owners, notes: asked.gathered.notes } : null;
    return this.#lastMeasured;
  }
}

function empty(): SavedConversation {
  const now = Date.now();
  return {
    id: `c${now.toString(36)}${Math.floor(Math.random() * 1e6).toString(36)}`,
    createdAt: now,
    updatedAt: now,
    turns: [],
  };
}
