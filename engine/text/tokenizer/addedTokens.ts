/**
 * Finds added tokens in a text, as the reference does: the longest one at the leftmost place, with its flags. Does not
 * know which of them a text may use (see Pieces).
 */
import type { AddedToken } from './tokenizerJson.ts';

/** Of Rust's regular expressions. */
const WORD = /^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]$/u;
const SPACE = /^\p{White_Space}$/u;

/** [start, end) of the text. Text between added tokens has no id. */
export interface Section {
  start: number;
  end: number;
  id?: number;
}

export class AddedTokens {
  readonly #byContent: ReadonlyMap<string, AddedToken>;
  readonly #pattern: RegExp | undefined;

  /** `contentOf`: the text that a token matches. */
  constructor(tokens: readonly AddedToken[], contentOf: (token: AddedToken) => string = ({ content }) => content) {
    this.#byContent = new Map(
      tokens.map((token) => [contentOf(token), token] as const).filter(([content]) => content !== ''),
    );
    this.#pattern = this.#byContent.size === 0 ? undefined : anyOf([...this.#byContent.keys()]);
  }

  /** Replaces every match. Flags do not matter. */
  replace(text: string, change: (found: string) => string): string {
    return this.#pattern === undefined ? text : text.replace(this.#pattern, change);
  }

  /**
   * The text in sections. White space that a token takes may itself be a token of this set: then both are there, and
   * their sections overlap, as in the reference.
   */
  split(text: string): Section[] {
    const sections: Section[] = [];
    let from = 0;
    for (const { 0: content, index } of this.#pattern === undefined ? [] : text.matchAll(this.#pattern)) {
      const token = this.#byContent.get(content) as AddedToken;
      let start = index;
      let end = index + content.length;
      if (token.single_word && (WORD.test(characterBefore(text, start)) || WORD.test(characterAt(text, end)))) continue;
      if (token.lstrip) {
        while (start > from && SPACE.test(text[start - 1] as string)) start--;
        start = Math.max(start, from);
      }
      if (token.rstrip) while (end < text.length && SPACE.test(text[end] as string)) end++;
      if (from < start) sections.push({ start: from, end: start });
      sections.push({ start, end, id: token.id });
      from = end;
    }
    if (from < text.length) sections.push({ start: from, end: text.length });
    return sections;
  }
}

/** Matches any of the texts. Where several match at one place, the longest one wins. */
function anyOf(texts: readonly string[]): RegExp {
  const alternatives = [...texts]
    .sort((a, b) => b.length - a.length)
    .map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'));
  return new RegExp(alternatives.join('|'), 'g');
}

function characterAt(text: string, at: number): string {
  return at < text.length ? String.fromCodePoint(text.codePointAt(at) as number) : '';
}

function characterBefore(text: string, at: number): string {
  const pair = at > 1 && (text.codePointAt(at - 2) as number) > 0xffff;
  return at === 0 ? '' : characterAt(text, pair ? at - 2 : at - 1);
}

/** Characters of the names of control tokens. */
const MARKS = /[<>[\]{}|｜]/;

/** Whether an added token is text of a user: spaces, letters, words. */
export function isPlainText({ special, content }: AddedToken): boolean {
  return !special && !MARKS.test(content);
}

/** Whether an added token never matches on both sides of a line boundary, and depends on nothing around it. */
export function keepsLines({ content, lstrip, rstrip, single_word: singleWord }: AddedToken): boolean {
  return !lstrip && !rstrip && !singleWord && !/\n[!-~]/.test(content);
}
