/**
 * Splits what a model writes into its reasoning and its answer, while it streams. Does not decide who sees the
 * reasoning.
 */
import { marksOf, type ReasoningMarks } from '../text/format/controlTokens.ts';
import type { ModelText } from '../text/format/modelText.ts';

/**
 * Most tokens of reasoning, which do not count as tokens of the answer. Published models reason for a few thousand
 * tokens about a question on code. One that goes on is lost in a loop, and would fill a long context for an hour.
 */
const MAX_REASONING = 8192;

/** Ids at the end of a prompt that contain a mark, also one that is spelt by bytes, and the line breaks after it. */
const MAX_END = 16;

/**
 * Where the answer begins. `inside`: the prompt ends with the opening mark. `answer`: the model may still open its
 * reasoning first. `unclear`: the model is asked to reason, but the prompt does not open it. Then a closing mark alone
 * makes all text before it reasoning, so text that does not begin with the opening mark is held back to its end.
 */
export type ReasoningStart = 'inside' | 'answer' | 'unclear';

export interface ReasoningForm extends ReasoningMarks {
  readonly start: ReasoningStart;
  /** The answer is code, in which marks are code. Only its beginning may be reasoning. */
  readonly isCode: boolean;
}

/** How an answer to this prompt may reason. */
export function reasoningForm(text: ModelText, promptIds: readonly number[], isCode = false): ReasoningForm {
  const marks = marksOf(text.tokenizer);
  const end = text.tokenizer.decode(promptIds.slice(-MAX_END)).trimEnd();
  const start = end.endsWith(marks.open)
    ? 'inside'
    : !isCode && text.chatTemplate?.asksForThinking && !end.endsWith(marks.close)
      ? 'unclear'
      : 'answer';
  return { ...marks, start, isCode };
}

/** Tokens to reserve for reasoning before an answer. */
export function reservedForReasoning({ chatTemplate, tokenizer }: ModelText, enableThinking?: boolean): number {
  if (chatTemplate === undefined) return 0;
  if (chatTemplate.asksForThinking) return enableThinking === false ? 0 : MAX_REASONING;
  return chatTemplate.endsWith(marksOf(tokenizer).open) ? MAX_REASONING : 0;
}

export interface SplitText {
  answer: string;
  reasoning: string;
}

/** Text of an answer is never taken back, and no part of a mark is ever in it. */
export class Reasoning {
  /** Most tokens. */
  readonly most = MAX_REASONING;
  readonly #form: ReasoningForm;
  /** `start`: nothing but white space yet. `undecided`: held back, see `unclear`. */
  #state: 'start' | 'undecided' | 'reasoning' | 'answer';
  /** Text that may become a mark, or that is undecided. */
  #held = '';
  /** Tokens of the held text at the start. */
  #numHeld = 0;
  #numTokens = 0;
  /** Whether the present token belongs to the reasoning. */
  #isPartOfIt = false;
  /** The line of the answer that is being written. */
  #line = '';
  #isFenced = false;

  constructor(form: ReasoningForm) {
    this.#form = form;
    this.#state = form.start === 'inside' ? 'reasoning' : 'start';
  }

  /** Whether the model is reasoning. */
  get isOpen(): boolean {
    return this.#state === 'reasoning';
  }

  /** Tokens of reasoning so far, with the marks. */
  get numTokens(): number {
    return this.#numTokens;
  }

  /** Takes the text of the next token. */
  push(text: string): SplitText {
    const split = { answer: '', reasoning: '' };
    this.#isPartOfIt = this.isOpen;
    let rest: string | null = this.#held + text;
    this.#held = '';
    while (rest !== null) rest = this.#take(rest, split);
    if (this.#state === 'start' || this.#state === 'undecided') this.#numHeld++;
    else {
      if (this.#isPartOfIt) this.#numTokens += this.#numHeld + (split.answer.trim() === '' ? 1 : 0);
      this.#numHeld = 0;
    }
    return split;
  }

  /** The text that is held back, when no more will come. The beginning of a mark is dropped. */
  flush(): SplitText {
    const held = this.#held;
    this.#held = '';
    if (this.isOpen) return { answer: '', reasoning: held };
    const isMark = this.#state !== 'undecided' && held.trim().length > 1 && this.#mayBecomeMark(held.trim());
    return { answer: isMark ? '' : held, reasoning: '' };
  }

  /** Adds the first part of the text to `split`. @returns the rest, or null if everything is taken or held back */
  #take(text: string, split: SplitText): string | null {
    const { open, close, start, isCode } = this.#form;
    if (this.#state === 'start') {
      const begun = text.trimStart();
      if (begun.startsWith(open)) return this.#pass('reasoning', begun.slice(open.length));
      if (begun.startsWith(close)) return this.#pass('answer', begun.slice(close.length));
      if (begun === '' || this.#mayBecomeMark(begun)) return this.#hold(text);
      return this.#enter(start === 'unclear' ? 'undecided' : 'answer', text);
    }
    if (this.#state === 'answer') {
      if (!isCode) return this.#takeLine(text, split);
      split.answer += text;
      return null;
    }
    const at = text.indexOf(close);
    if (at >= 0) {
      split.reasoning += text.slice(0, at);
      return this.#pass('answer', text.slice(at + close.length));
    }
    if (this.#state === 'undecided') return this.#hold(text);
    const shown = text.length - beginningOf(close, text);
    split.reasoning += text.slice(0, shown);
    return this.#hold(text.slice(shown));
  }

  /** In prose a mark at the start of a line is a mark, but not in a block of code. Elsewhere the text mentions it. */
  #takeLine(text: string, split: SplitText): string | null {
    const { open, close } = this.#form;
    const end = text.indexOf('\n');
    const line = end < 0 ? text : text.slice(0, end);
    const begun = line.trimStart();
    if (this.#line.trim() === '' && !this.#isFenced) {
      split.answer += line.slice(0, line.length - begun.length);
      const rest = text.slice(line.length - begun.length);
      if (begun.startsWith(open)) return this.#pass('reasoning', rest.slice(open.length));
      if (begun.startsWith(close)) return this.#pass('answer', rest.slice(close.length));
      if (end < 0 && begun !== '' && this.#mayBecomeMark(begun)) return this.#hold(begun);
      split.answer += begun;
    } else split.answer += line;
    this.#line += line;
    if (end < 0) return null;
    split.answer += '\n';
    if (/^\s*(?:```|~~~)/.test(this.#line)) this.#isFenced = !this.#isFenced;
    this.#line = '';
    return text.slice(end + 1);
  }

  /** After a mark. */
  #pass(state: 'reasoning' | 'answer', rest: string): string {
    this.#isPartOfIt = true;
    return this.#enter(state, rest);
  }

  #enter(state: 'undecided' | 'reasoning' | 'answer', rest: string): string {
    this.#state = state;
    this.#line = '';
    return rest;
  }

  #hold(text: string): null {
    this.#held = text;
    return null;
  }

  #mayBecomeMark(text: string): boolean {
    return this.#form.open.startsWith(text) || this.#form.close.startsWith(text);
  }
}

/** Length of the longest end of `text` that is a beginning of `mark`. */
function beginningOf(mark: string, text: string): number {
  let length = Math.min(mark.length - 1, text.length);
  while (length > 0 && !text.endsWith(mark.slice(0, length))) length--;
  return length;
}
