/**
 * One conversation: its turns and the requests that write them. Does not know the editor, the page or the storage.
 * Several answers may stream at once, such as a summary next to a question.
 */
import type { ChatMessage, Priority, SamplingParams, Task, Timings, Usage } from '../../engine/protocol/tasks.ts';
import { RequestError } from '../../engine/protocol/errors.ts';
import type { EngineClient } from '../client/engineClient.ts';
import { remedyOf } from '../client/remedy.ts';
import type { AssistantTurn, ContextRef, Turn, UserTurn } from './chatMessages.ts';
import { ENGLISH, messageOf } from '../format.ts';

/** A request to the engine. */
export interface Prepared {
  /** Built when the request is sent. */
  task: () => Task;
  /** The prompt, if it differs from the user's words. */
  prompt?: string;
  /** Notes about what could not be included. */
  notes?: string[];
}

/** Why the engine is not asked. This is not a failure. */
export type Unasked =
  | { /** A model that is too small for the question. */ refused: string }
  | { /** What the question lacks, in words. */ missing: string };

export interface Ask {
  /** Shown as the user's turn. */
  question: string;
  context: ContextRef[];
  /**
   * Called before the request. `history` is the earlier conversation; `about` is told what the question is about, if
   * that had to be looked up.
   */
  prepare(history: ChatMessage[], about: (context: ContextRef[]) => void): Promise<Prepared | Unasked>;
  /** A model that is too small for the question is asked, too. */
  anyway?: boolean;
  priority: Priority;
  sampling?: SamplingParams;
}

export type ConversationChange =
  | { type: 'turns' }
  | { type: 'turn'; turn: AssistantTurn }
  | { type: 'append'; id: string; text: string; reasoning?: true };

/** The stored form. */
export interface SavedConversation {
  id: string;
  /** Milliseconds since 1970. */
  createdAt: number;
  updatedAt: number;
  turns: Turn[];
}

export interface ConversationOptions {
  engine: Pick<EngineClient, 'generate'>;
  /** Notes under an answer that the user stopped, and under one that a reload interrupted. */
  notes: { stopped: string; interrupted: string };
  /** How reliable the loaded model's answers are; empty if its manifest does not say. */
  modelNote(): string;
  /** Open files to attach to a question that lacks one. */
  openFiles(): ContextRef[];
  /** The name of the loaded model. */
  modelName(): string;
  onChange(change: ConversationChange): void;
}

export class Conversation {
  readonly id: string;
  readonly createdAt: number;
  readonly #options: ConversationOptions;
  readonly #running = new Map<string, { abort: AbortController; priority: Priority }>();
  /** Questions asked since the window was opened, by turn. */
  readonly #asks = new Map<string, Ask>();
  #turns: Turn[];
  #updatedAt: number;
  #numTurns: number;

  constructor(saved: SavedConversation, options: ConversationOptions) {
    this.id = saved.id;
    this.createdAt = saved.createdAt;
    this.#updatedAt = saved.updatedAt;
    this.#options = options;
    // Answers that were being written when this was stored have ended.
    this.#turns = saved.turns.map((turn) => {
      if (turn.role !== 'assistant') return turn;
      // Other files may be open now.
      const { offers: _, ...kept } = turn;
      return kept.state === 'streaming'
        ? { ...kept, state: 'done', notes: [...kept.notes, options.notes.interrupted] }
        : kept;
    });
    this.#numTurns = saved.turns.reduce((max, turn) => Math.max(max, Number(turn.id.slice(1)) || 0), 0);
  }

  get turns(): readonly Turn[] {
    return this.#turns;
  }

  get busy(): boolean {
    return this.#running.size > 0;
  }

  /** Whether a question is being answered. A second one is refused until then. */
  get asking(): boolean {
    return [...this.#running.values()].some(({ priority }) => priority === 'chat');
  }

  /** Whether a question above this one is being answered. Asking this one again would not stop that. */
  askingAbove(questionId: string): boolean {
    const at = this.#turns.findIndex(({ id }) => id === questionId);
    return this.#turns.slice(0, Math.max(0, at)).some(({ id }) => this.#running.get(id)?.priority === 'chat');
  }

  get saved(): SavedConversation {
    return { id: this.id, createdAt: this.createdAt, updatedAt: this.#updatedAt, turns: this.#turns };
  }

  /** The finished turns as the model reads them. A question without a complete answer is left out. */
  history(): ChatMessage[] {
    const messages: ChatMessage[] = [];
    for (const [i, turn] of this.#turns.entries()) {
      const answer = this.#turns[i + 1];
      if (turn.role !== 'user' || answer?.role !== 'assistant' || answer.state !== 'done' || !answer.text) continue;
      messages.push(
        { role: 'user', content: turn.prompt ?? turn.text },
        { role: 'assistant', content: answer.text, ...(answer.source ? { source: answer.source } : {}) },
      );
    }
    return messages;
  }

  /** Adds the question and streams its answer. Resolves when that has ended; never rejects. */
  async run(ask: Ask): Promise<void> {
    if (ask.priority === 'chat' && this.asking) return;
    const history = this.history();
    const question: UserTurn = { id: this.#nextId(), role: 'user', text: ask.question, context: ask.context };
    const answer: AssistantTurn = { id: this.#nextId(), role: 'assistant', text: '', state: 'streaming', notes: [] };
    const abort = new AbortController();
    this.#running.set(answer.id, { abort, priority: ask.priority });
    this.#asks.set(question.id, ask);
    // Only the last question can be asked again with a file.
    for (const turn of this.#turns) if (turn.role === 'assistant') delete turn.offers;
    this.#turns.push(question, answer);
    this.#touch({ type: 'turns' });
    const about = (context: ContextRef[]) => {
      question.context = context;
      if (this.#turns.includes(question)) this.#touch({ type: 'turns' });
    };
    try {
      const aborted = new Promise<null>((resolve) =>
        abort.signal.addEventListener('abort', () => resolve(null), { once: true }),
      );
      const prepared = await Promise.race([ask.prepare(history, about), aborted]);
      if (prepared === null || abort.signal.aborted) answer.notes = [this.#options.notes.stopped];
      else if ('refused' in prepared) answer.refused = prepared.refused;
      else if ('missing' in prepared) {
        answer.notes = [prepared.missing];
        answer.offers = this.#options.openFiles();
      } else {
        if (prepared.prompt !== undefined && prepared.prompt !== question.text) question.prompt = prepared.prompt;
        await this.#generate(answer, question.context, prepared, ask, abort.signal);
      }
      answer.state = 'done';
    } catch (error) {
      answer.state = 'error';
      answer.error = messageOf(error);
      const remedy = remedyOf(answer.error, error instanceof RequestError ? error.code : undefined);
      if (remedy) answer.remedy = remedy;
    } finally {
      this.#running.delete(answer.id);
      this.#changed({ type: 'turn', turn: answer });
    }
  }

  async #generate(
    answer: AssistantTurn,
    context: readonly ContextRef[],
    prepared: Prepared,
    { priority, sampling }: Ask,
    signal: AbortSignal,
  ): Promise<void> {
    const done = await this.#options.engine.generate({
      task: prepared.task,
      priority,
      ...(sampling ? { sampling } : {}),
      onChunk: (text) => {
        answer.text += text;
        this.#changed({ type: 'append', id: answer.id, text });
      },
      onReasoning: (text) => {
        answer.reasoning = { text: (answer.reasoning?.text ?? '') + text };
        this.#changed({ type: 'append', id: answer.id, text, reasoning: true });
      },
      signal,
    });
    answer.text = done.text || answer.text;
    if (done.reasoning !== undefined)
      answer.reasoning = { text: done.reasoning.trimEnd(), tokens: done.usage.reasoningTokens ?? 0 };
    answer.notes = [
      ...(prepared.notes ?? []),
      ...done.diagnostics,
      ...(done.finishReason === 'abort' ? [this.#options.notes.stopped] : []),
    ];
    if (done.source) answer.source = done.source;
    if (done.source === 'unattached') answer.offers = this.#options.openFiles();
    // The view says so, with what can be done.
    if (done.source === 'refused') Object.assign(answer, { refused: this.#options.modelName(), text: '' });
    const [about] = context;
    if (done.source === 'files' && about && context.every(({ uri }) => uri === about.uri))
      answer.linesOf = { uri: about.uri, path: about.path.replace(/:[\d-]+$/, '') };
    if (done.usage.promptTokens > 0) {
      answer.footer = footerOf(done);
      answer.reused = done.usage.cachedTokens / done.usage.promptTokens;
      const modelNote = this.#options.modelNote();
      if (
        modelNote &&
        !done.source &&
        answer.text.trim() &&
        !this.#turns.some((turn) => turn.role === 'assistant' && turn.modelNote === modelNote)
      )
        answer.modelNote = modelNote;
    }
  }

  askOf(questionId: string): Ask | undefined {
    return this.#asks.get(questionId);
  }

  stop(): void {
    for (const { abort } of this.#running.values()) abort.abort();
  }

  /**
   * Removes a question and everything after it, and stops running answers among them. Returns undefined for an unknown
   * question.
   */
  dropFrom(questionId: string): UserTurn | undefined {
    const at = this.#turns.findIndex(({ id }) => id === questionId);
    const question = this.#turns[at];
    if (question?.role !== 'user') return undefined;
    for (const { id } of this.#turns.slice(at)) {
      this.#running.get(id)?.abort.abort();
      // Answers that are being aborted do not block the next question.
      this.#running.delete(id);
    }
    this.#turns = this.#turns.slice(0, at);
    this.#touch({ type: 'turns' });
    return question;
  }

  /** Reports a change of a turn, unless the turn has been removed in the meantime. */
  #changed(change: Extract<ConversationChange, { type: 'turn' | 'append' }>): void {
    const id = change.type === 'turn' ? change.turn.id : change.id;
    if (this.#turns.some((turn) => turn.id === id)) this.#touch(change);
  }

  #touch(change: ConversationChange): void {
    this.#updatedAt = Date.now();
    this.#options.onChange(change);
  }

  #nextId(): string {
    return `t${++this.#numTurns}`;
  }
}

/**
 * The line under an answer: "8,112 of 8,164 tokens reused · first token 61 ms · 44 tok/s". Without a rate for a single
 * token. Not translated, because checks outside the extension read its fixed format.
 */
export function footerOf({ usage, timings }: { usage: Usage; timings: Timings }): string {
  const parts = [
    `${ENGLISH.count(usage.cachedTokens)} of ${ENGLISH.count(usage.promptTokens)} tokens reused`,
    `first token ${ENGLISH.count(timings.ttftMs)} ms`,
  ];
  if (timings.tpotMs > 0) parts.push(`${ENGLISH.count(1000 / timings.tpotMs)} tok/s`);
  if (usage.shiftedTokens) parts.push(`${ENGLISH.count(usage.shiftedTokens)} approximated`);
  if (usage.inParts) parts.push('read in parts');
  return parts.join(' · ');
}
