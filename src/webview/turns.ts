/** The list of turns: one element each, which stays while its turn is the same. */
import type { AssistantTurn, Strings, Turn } from '../chat/chatMessages.ts';
import { type AnswerActions, AnswerTurn } from './answerTurn.ts';
import { fitHeight, keepingFocus } from './dom.ts';
import { editQuestion, type QuestionActions, questionTurn } from './questionTurn.ts';

export interface TurnActions extends AnswerActions, QuestionActions {
  /** The focused element of the list is gone. */
  focusLost(): void;
}

interface Shown {
  turn: string;
  root: HTMLElement;
  answer?: AnswerTurn;
}

/** Renders an answer's first piece at once, and later ones at most once per frame. */
export class TurnList {
  readonly #root: HTMLElement;
  readonly #strings: Strings;
  readonly #actions: TurnActions;
  #shown = new Map<string, Shown>();
  readonly #stale = new Map<string, AssistantTurn>();
  #inFrame = false;

  constructor(root: HTMLElement, strings: Strings, actions: TurnActions) {
    this.#root = root;
    this.#strings = strings;
    this.#actions = actions;
  }

  /** Shows exactly these turns. */
  show(turns: readonly Turn[]): void {
    this.#stale.clear();
    const before = this.#shown;
    this.#shown = new Map(
      turns.map((turn) => {
        const known = before.get(turn.id);
        const text = JSON.stringify(turn);
        return [turn.id, known?.turn === text ? known : this.#make(turn, text)];
      }),
    );
    const roots = [...this.#shown.values()].map(({ root }) => root);
    keepingFocus(
      this.#root,
      () => {
        for (const child of [...this.#root.children]) if (!roots.includes(child as HTMLElement)) child.remove();
        for (const [i, root] of roots.entries())
          if (this.#root.children[i] !== root) this.#root.insertBefore(root, this.#root.children[i] ?? null);
      },
      this.#actions.focusLost,
    );
    for (const input of this.#root.querySelectorAll('textarea')) fitHeight(input);
  }

  /** An answer has grown or ended. */
  update(turn: AssistantTurn): void {
    this.#stale.set(turn.id, turn);
    if (this.#inFrame) return;
    this.#inFrame = true;
    this.#flush();
    requestAnimationFrame(() => {
      this.#inFrame = false;
      for (const late of this.#stale.values()) this.update(late);
    });
  }

  /** Opens the last question for editing; returns false if there is none. */
  editLast(): boolean {
    const last = [...this.#root.querySelectorAll<HTMLElement>('.turn.user')].at(-1);
    if (last) editQuestion(last);
    return last !== undefined;
  }

  #flush(): void {
    const following = isAtEnd();
    for (const turn of this.#stale.values()) {
      const shown = this.#shown.get(turn.id);
      if (!shown?.answer) continue;
      const { answer } = shown;
      keepingFocus(shown.root, () => answer.show(turn), this.#actions.focusLost);
      shown.turn = JSON.stringify(turn);
    }
    this.#stale.clear();
    if (following) scrollToEnd();
  }

  #make(turn: Turn, text: string): Shown {
    if (turn.role === 'user') return { turn: text, root: questionTurn(turn, this.#strings, this.#actions) };
    const answer = new AnswerTurn(turn, this.#strings, this.#actions);
    return { turn: text, root: answer.root, answer };
  }
}

const END_PX = 40;

/** Whether the conversation is scrolled to its end, or nearly. */
export function isAtEnd(): boolean {
  const scroller = document.getElementById('log');
  return !scroller || scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < END_PX;
}

/** Shows the end of the conversation. */
export function scrollToEnd(): void {
  const scroller = document.getElementById('log');
  if (scroller) scroller.scrollTop = scroller.scrollHeight;
}
