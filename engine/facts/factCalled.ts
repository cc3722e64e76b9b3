/** Where a file calls something, or uses it in any way, by the name that the question has. Pure. */
import type { Call } from './extract/factCalls.ts';
import type { Import } from './extract/factImports.ts';
import type { Definition, Facts } from './extract/facts.ts';
import { firstOf, MAX_IN_LINE, quoted } from './factPhrases.ts';
import type { FactQuestion } from './factQuestion.ts';
import { lineAt, linesOf, places, whereAnswer } from './factWhere.ts';
import { WORDS } from './factWords.ts';

/** @param known what the file defines or imports by that name. Undefined where what stands there is called and defined nowhere, or by another name. */
export function calledAnswer(
  { name, owner, language }: FactQuestion,
  known: readonly Pick<Definition, 'line' | 'owner'>[],
  facts: Facts,
  text: string,
): string | undefined {
  // `flush() { … }` is a call where the tree has lost its class.
  if (facts.broken) return undefined;
  const words = WORDS[language];
  const own = facts.calls.filter((call) => call.name === name && (owner === undefined || call.on === owner));
  const listed = (some: readonly number[]): string => firstOf(some.map(String), language);
  const where = (lines: readonly number[]): string =>
    lines.length > MAX_IN_LINE
      ? words.inLines(listed(lines))
      : places(
          lines.map((line) => lineAt(text, line)),
          language,
        );
  // What is no member has nothing before it, or what holds it: what has a dot before it may be another.
  const apart = owner === undefined && known.length > 0 && known.every((each) => each.owner === undefined);
  const lines = calledIn(own.filter(({ member }) => !apart || !member));
  const afterDot = calledIn(own).filter((line) => !lines.includes(line));
  if (own.length > 0)
    return [
      ...(lines.length > 0 ? [words.calledIn(quoted(name), where(lines))] : []),
      ...(afterDot.length > 0 ? [words.calledAfterDot(quoted(name), where(afterDot))] : []),
    ].join(' ');
  // A variable of another name may hold what a method belongs to.
  if (owner !== undefined || known.length === 0) return undefined;
  const others = linesOf(text, name).filter((at) => !known.some(({ line }) => line === at));
  return [
    words.notCalled(quoted(name)),
    ...(others.length > 0 ? [words.namedIn(listed(others), others.length === 1)] : []),
  ].join(' ');
}

/** Where something comes from, and all other lines that have its name. @param called what the file defines by that name, @param from what it imports */
export function usedAnswer(
  { name, language }: FactQuestion,
  called: readonly Definition[],
  from: readonly Import[],
  text: string,
): string {
  const words = WORDS[language];
  const lines = linesOf(text, name).filter((at) => ![...called, ...from].some(({ line }) => line === at));
  const where =
    lines.length > MAX_IN_LINE
      ? words.inLines(firstOf(lines.map(String), language))
      : places(
          lines.map((line) => lineAt(text, line)),
          language,
        );
  if (called.length + from.length === 0) return words.standsIn(quoted(name), where);
  return `${whereAnswer(called, from, name, language)}${called.length > MAX_IN_LINE ? '\n\n' : ' '}${lines.length > 0 ? words.alsoStands(where) : words.nowhereElse}`;
}

const calledIn = (calls: readonly Call[]): number[] => [...new Set(calls.map(({ line }) => line))];
