/** Where a file calls something, by the name that the question has. Pure. */
import type { Definition, Facts } from '../text/facts.ts';
import { asFarAsRead } from './factListed.ts';
import { firstOf, MOST_IN_LINE, quoted } from './factPhrases.ts';
import type { FactQuestion } from './factQuestion.ts';
import { lineAt, occursIn, places } from './factWhere.ts';
import { WORDS } from './factWords.ts';

/** @param known what the file defines or imports by that name. Undefined where what stands there is called and defined nowhere, or by another name. */
export function calledAnswer({ name, owner, language }: FactQuestion, known: readonly Pick<Definition, 'line'>[], facts: Facts, text: string): string | undefined {
  const words = WORDS[language];
  const own = facts.calls.filter((call) => call.name === name && (owner === undefined || call.on === owner));
  const lines = [...new Set(own.map(({ line }) => line))];
  const listed = (some: readonly number[]): string => firstOf(some.map(String), language);
  if (lines.length > 0) {
    const where = lines.length > MOST_IN_LINE ? words.calledAt(listed(lines)) : places(lines.map((line) => lineAt(text, line)), language);
    return asFarAsRead(facts, words.calledIn(quoted(name), where), lines.length, language);
  }
  // A variable of another name may hold what a method belongs to.
  if (facts.broken || owner !== undefined || known.length === 0) return undefined;
  const others = text.split('\n').flatMap((line, i) => (occursIn(line, name) && !known.some((each) => each.line === i + 1) ? [i + 1] : []));
  return [words.notCalled(quoted(name)), ...(others.length > 0 ? [words.namedIn(listed(others), others.length === 1)] : [])].join(' ');
}
