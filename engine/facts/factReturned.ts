/** What comes back from functions: the type that they declare, or else what their `return` statements say, as it is written. No type is guessed. Pure. */
import type { Definition } from './extract/facts.ts';
import type { QuestionLanguage } from './factKinds.ts';
import { brief, CONSTRUCTOR, every, joined, qualified, quoted } from './factPhrases.ts';
import { WORDS } from './factWords.ts';

const MAX_VALUES = 3;
/** More is cut. */
const MAX_VALUE = 100;

/** @param called all definitions of that name. Undefined unless there is an answer for each. */
export function returnedAnswer(
  called: readonly Definition[],
  name: string,
  text: string,
  language: QuestionLanguage,
): string | undefined {
  const words = WORDS[language];
  return every(called, ({ parameters, returns, given, line, owner, brokenInside }) => {
    // A class gives its instances, in ways of its own.
    if (parameters === undefined || CONSTRUCTOR.test(name)) return undefined;
    const n = qualified(called, name, owner);
    if (returns !== undefined) return brief(returns) ? words.returns(n, returns, line) : undefined;
    if (!given || brokenInside) return undefined;
    const values = new Map<string, number>();
    for (const value of given.values) {
      const written = text.slice(value.from, value.to).replace(/\s+/g, ' ');
      if (!values.has(written)) values.set(written, value.line);
    }
    const [shown, more] = [[...values].slice(0, MAX_VALUES), [...values.values()].slice(MAX_VALUES)];
    if (shown.some(([written]) => written.includes('``'))) return undefined;
    const items = [
      ...shown.map(([written, at]) => `${quoted(cut(written))} (${words.line} ${at})`),
      ...(more.length ? [words.moreReturned(more.length, given, more)] : []),
    ];
    if (items.length > 0 && given.bare !== undefined && !given.generator)
      items.push(`${words.nothingGiven} (${words.line} ${given.bare})`);
    return words.returned(
      n,
      given,
      items.length ? joined(items, language, given.generator ? undefined : words.or) : undefined,
      line,
    );
  });
}

const cut = (written: string): string =>
  written.length <= MAX_VALUE ? written : `${written.slice(0, MAX_VALUE).trimEnd()} …`;
