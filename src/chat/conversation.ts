/**
 * The turns of the chat and the requests that write them. Knows neither the editor nor the page that shows them, so that
 * it is tested with a scripted engine. Several answers may stream at once (a summary beside a question).
 */
import type { ChatMessage, Priority, SamplingParams, Task } from '../../engine/protocol.ts';
import type { EngineClient } from '../engineClient.ts';
import type { AssistantTurn, ToPage, Turn } from './chatMessages.ts';
import { footerOf } from './footer.ts';

export interface Ask {
  /** Shown as the user's turn. */
  question: string;
  file?: string;
  /** Built when the request is sent. */
  task: () => Task;
  priority: Priority;
  sampling?: SamplingParams;
}

export type ConversationChange = Extract<ToPage, { type: 'turns' | 'turn' | 'append' }>;

export class Conversation {
  readonly #engine: Pick<EngineClient, 'generate'>;
  readonly #onChange: (change: ConversationChange) => void;
  readonly #stoppedNote: string;
  #turns: Turn[] = [];
  #running = new Map<string, { abort: AbortController; priority: Priority }>();
  /** Whether a page's turns may still be taken over. */
  #restorable = true;
  #numTurns = 0;

  /** `stoppedNote` is shown under an answer that the user stopped. */
  constructor(engine: Pick<EngineClient, 'generate'>, stoppedNote: string, onChange: (change: ConversationChange) => void) {
    this.#engine = engine;
    this.#stoppedNote = stoppedNote;
    this.#onChange = onChange;
  }

  get turns(): readonly Turn[] {
    return this.#turns;
  }

  get busy(): boolean {
    return this.#running.size > 0;
  }

  /** The finished turns as the model reads them; a question whose answer failed or is still being written is left out with it. */
  history(): ChatMessage[] {
    const messages: ChatMessage[] = [];
    for (const [i, turn] of this.#turns.entries()) {
      const answer = this.#turns[i + 1];
      if (turn.role !== 'user' || answer?.role !== 'assistant' || answer.state !== 'done' || !answer.text) continue;
      messages.push({ role: 'user', content: turn.text }, { role: 'assistant', content: answer.text });
    }
    return messages;
  }

  /** Adds the question and streams its answer; settles when that has ended, never rejects. One question at a time: a second (a double click) is ignored. */
  async run(ask: Ask): Promise<void> {
    if (ask.priority === 'chat' && [...this.#running.values()].some(({ priority }) => priority === 'chat')) return;
    this.#restorable = false;
    const answer: AssistantTurn = { id: this.#nextId(), role: 'assistant', text: '', state: 'streaming', notes: [] };
    const abort = new AbortController();
    this.#running.set(answer.id, { abort, priority: ask.priority });
    this.#turns.push({ id: this.#nextId(), role: 'user', text: ask.question, ...(ask.file === undefined ? {} : { file: ask.file }) }, answer);
    this.#onChange({ type: 'turns', turns: this.#turns });
    try {
      const done = await this.#engine.generate({
        task: ask.task,
        priority: ask.priority,
        ...(ask.sampling ? { sampling: ask.sampling } : {}),
        onChunk: (text) => {
          answer.text += text;
          this.#changed({ type: 'append', id: answer.id, text });
        },
        signal: abort.signal,
      });
      answer.text = done.text || answer.text;
      answer.state = 'done';
      answer.notes = done.finishReason === 'abort' ? [...done.diagnostics, this.#stoppedNote] : done.diagnostics;
      if (done.usage.promptTokens > 0) {
        answer.footer = footerOf(done);
        answer.reused = done.usage.cachedTokens / done.usage.promptTokens;
      }
    } catch (error) {
      answer.state = 'error';
      answer.error = error instanceof Error ? error.message : String(error);
    } finally {
      this.#running.delete(answer.id);
      this.#changed({ type: 'turn', turn: answer });
    }
  }

  stop(): void {
    for (const { abort } of this.#running.values()) abort.abort();
  }

  clear(): void {
    this.stop();
    // What is still being aborted does not keep the next question waiting.
    this.#running.clear();
    this.#restorable = false;
    this.#turns = [];
    this.#onChange({ type: 'turns', turns: this.#turns });
  }

  /** Takes over what a page had kept across a reload of the window: once, and not after anything has happened here. */
  restore(turns: Turn[]): void {
    if (!this.#restorable) return;
    this.#restorable = false;
    // Answers that the reload cut off are over.
    this.#turns = turns.map((turn) => (turn.role === 'assistant' && turn.state === 'streaming' ? { ...turn, state: 'done', notes: [...turn.notes, this.#stoppedNote] } : turn));
    this.#numTurns = turns.reduce((most, turn) => Math.max(most, Number(turn.id.slice(1)) || 0), 0);
  }

  /** After `clear` an answer that is still being written is nobody's. */
  #changed(change: Extract<ConversationChange, { type: 'turn' | 'append' }>): void {
    const id = change.type === 'turn' ? change.turn.id : change.id;
    if (this.#turns.some((turn) => turn.id === id)) this.#onChange(change);
  }

  #nextId(): string {
    return `t${++this.#numTurns}`;
  }
}
