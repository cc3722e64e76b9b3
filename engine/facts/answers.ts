/** Answers questions from the facts of one file. Gives no answer that the syntax tree leaves open. */
import { lineNumbersOf } from '../text/syntax/occurrences.ts';
import { commentAbove, firstParagraph, headComment } from './extract/comments.ts';
import type { Definition } from './extract/definitions.ts';
import { callerOf, type Facts } from './extract/facts.ts';
import { oneLine } from './extract/tree.ts';
import type { Intent } from './intents.ts';
import { firsts, isMemberOf, LISTS, outlineAnswer } from './lists.ts';
import type { Query } from './questions.ts';
import { type Item, itemText, joined, quoted } from './sentences.ts';
import {
  type Answer,
  asItem,
  bareOf,
  calledBy,
  type Defined,
  fullName,
  MAX_SAME,
  ofEach,
  partly,
  placesOf,
  shown,
  type Source,
} from './source.ts';

const MAX_SIGNATURE = 400;
const MAX_VALUE = 100;

const ANSWERS: Readonly<Record<Intent, Answer>> = {
  ...LISTS,
  purpose: purposeAnswer,
  where: whereAnswer,
  signature: ofEach(signatureOf),
  returns: ofEach(returnsOf),
  callers: callersAnswer,
  changes: changesAnswer,
  throws: throwsAnswer,
};
/** Intents for a language of which only definitions and changes are read. */
const OF_OTHERS: readonly Intent[] = ['outline', 'purpose', 'where', 'changes', 'throws'];

/** The answer to a query. Undefined if the facts of the file do not give it. */
export function answerFrom(query: Query, source: Source): string | undefined {
  const { intent, name } = query;
  if (!source.isData)
    return source.facts.partial && !OF_OTHERS.includes(intent) ? undefined : ANSWERS[intent](query, source);
  // A data file is for what it defines.
  if (name === '') return intent === 'outline' || intent === 'purpose' ? outlineAnswer(query, source) : undefined;
  return intent === 'where' || intent === 'changes' ? whereAnswer(query, source) : undefined;
}

/** Where a name is defined or imported, or else where it appears. Undefined if it does not appear. */
function whereAnswer(query: Query, source: Source): string | undefined {
  const { name, owner } = query;
  const { facts, document, say } = source;
  const called = calledBy(query, source.defined);
  const from = owner === undefined ? facts.imports.filter(({ names }) => names.includes(name)) : [];
  const [one] = called;
  // If brackets are missing, a method may seem to belong to another class.
  const about = quoted(one && called.length === 1 && !facts.broken ? fullName(one) : name);
  const lines = called.map(({ line }) => line);
  const modules = from.map(({ module, line }) => asItem({ name: module, line }));
  if (one || from.length > 0)
    return joined([
      one ? say('defined', placesOf(lines, source), about) : undefined,
      from.length > 0 ? say('imported', modules, quoted(name)) : undefined,
    ]);
  const appears = owner === undefined ? lineNumbersOf(document.lf, name) : [];
  return appears.length > 0 ? say('appears', placesOf(appears, source), about) : undefined;
}

const isConstructor = ({ name }: Definition): boolean => name === 'constructor' || name === '__init__';

/** The written declaration. For a class, that of its constructor. */
function signatureOf(one: Defined, { facts, document, say }: Source, about: string): string | undefined {
  const constructors = facts.definitions.filter((each) => isMemberOf(each, one) && isConstructor(each));
  const { head, broken, line } = one.kind === 'class' ? (constructors.at(-1) ?? one) : one;
  if (!head || broken || (facts.broken && one.kind === 'class')) return undefined;
  const code = oneLine(document.lf.slice(head.from, head.to)).replace(/\s*(?:[{:;]|=>)?\s*$/, '');
  return say('signature', [{ lines: [line], detail: shown(code, MAX_SIGNATURE) }], about);
}

/** The declared return type, or the written values of the `return` statements. */
function returnsOf(one: Defined, { document, say }: Source, about: string): string | undefined {
  const { parameters, returns, given, line, brokenInside } = one;
  if (parameters === undefined || isConstructor(one)) return undefined;
  if (returns !== undefined) return say('returns', [asItem({ name: returns, line })], about);
  if (!given || brokenInside || (given.generator && given.values.length === 0)) return undefined;
  const values = given.values.map(({ from, to, line: at }) => {
    const code = oneLine(document.lf.slice(from, to));
    return { name: code.length <= MAX_VALUE ? code : `${code.slice(0, MAX_VALUE)} …`, line: at };
  });
  const items: Item[] = firsts(values).map(asItem);
  if (!given.generator && (given.bare !== undefined || items.length === 0))
    items.push({ text: say('nothing'), lines: [given.bare ?? line] });
  const title = given.generator ? 'yields' : values.length > 0 ? 'returns' : 'returnsNo';
  return say(title, items, given.async ? `${about} (\`async\`)` : about);
}

/** The functions that call a name, and the other lines that have it. */
function callersAnswer(query: Query, source: Source): string | undefined {
  const { name, owner } = query;
  const { facts, document, say } = source;
  const [called, about] = [calledBy(query, source.defined), quoted(name)];
  const from = facts.imports.filter(({ names }) => names.includes(name));
  // After a dot, the name of a function may be that of a method of something else.
  const isFunction = called.length + from.length > 0 && called.every((each) => each.owner === undefined);
  const calls = facts.calls.filter(
    (call) => call.name === name && (owner === undefined ? !(isFunction && call.member) : call.on === owner),
  );
  const seen = [...calls, ...called, ...from].map(({ line }) => line);
  const appear = lineNumbersOf(document.lf, name);
  const others = placesOf(
    appear.filter((line) => !seen.includes(line)),
    source,
  );
  // In a tree with errors, a method of a class may look like a call.
  if (facts.broken) return say('appears', placesOf(appear, source), about);
  if (calls.length === 0 && owner !== undefined) return undefined;
  if (calls.length === 0) return others.length > 0 ? say('appears', others, about) : say('noUse', undefined, about);
  const by = calls.map((call) => ({ line: call.line, within: callerOf(call, facts) }));
  // The types of objects are not known.
  const isOwn = ({ member, on = '' }: (typeof calls)[number]): boolean =>
    !member || /^(?:this|self|cls|super)$/.test(on) || called.every((each) => (each.owner ?? on) === on);
  return joined([
    say('called', byFunction(by, source), about),
    others.length > 0 && owner === undefined ? say('alsoAppears', others) : undefined,
    calls.every(isOwn) ? undefined : say('otherObject', undefined, about),
  ]);
}

/** An item for each function, with its lines. */
function byFunction(some: readonly { within?: string | undefined; line: number }[], { say }: Source): Item[] {
  return [...new Set(some.map(({ within }) => within))].map((name) => ({
    text: name === undefined ? say('outside') : quoted(name),
    lines: [...new Set(some.filter(({ within }) => within === name).map(({ line }) => line))],
  }));
}

/** The functions that assign a name after its first value. */
function changesAnswer({ name }: Query, source: Source): string | undefined {
  const { facts, say } = source;
  const all = facts.changes.writes.filter((each) => each.name === bareOf(name));
  const later = all.filter(({ declares }) => !declares);
  const first = all.filter(({ declares }) => declares).map(({ line }) => line);
  // With errors in the tree, some assignments may be missing.
  if (later.length === 0 && facts.broken) return undefined;
  const isChanged = later.some(({ within = '' }) => within !== '' && !/\b(?:constructor|__init__)$/.test(within));
  const calls = isChanged ? [] : facts.calls.filter(({ on }) => on === name).map(({ line }) => line);
  return joined([
    later.length > 0
      ? say('assigned', byFunction(later, source), quoted(name))
      : say('notAssigned', undefined, quoted(name)),
    first.length > 0 ? say('firstValue', placesOf(first, source)) : undefined,
    calls.length > 0 ? say('callsOn', placesOf(calls, source)) : undefined,
    partly(source),
  ]);
}

/** What throws an exception of this name. Else what the file, or the function or class of this name, throws. */
function throwsAnswer(query: Query, source: Source): string | undefined {
  const { name, owner } = query;
  const { facts, document, say } = source;
  const { named, throws } = facts.changes;
  const thrown = name === '' ? [] : throws.filter((each) => each.name === bareOf(name));
  if (thrown.length > 0) return say('thrown', byFunction(thrown, source), quoted(name));
  const asked = named.filter(
    (each) =>
      each.kind !== 'class' &&
      (each.owner === name || (each.name === name && (owner === undefined || each.owner === owner))),
  );
  const own = throws.filter(({ within }) => name === '' || asked.some((each) => fullName(each) === within));
  // With errors in the tree, some may be missing.
  if (facts.broken && (own.length === 0 || name !== '')) return undefined;
  if (name !== '' && asked.length === 0) return whereAnswer(query, source);
  const about = quoted(name === '' ? document.path : name);
  const items = own.map((each) => {
    const what = each.name === undefined ? say('aValue') : quoted(each.name);
    const [by] = byFunction([each], source);
    return { lines: [], ...by, detail: each.inner ? `${what} ${say('inner')}` : what };
  });
  const found = own.length > 0 ? say('throws', items, about) : say('noThrows', undefined, about);
  return joined([found, say('mayThrow'), partly(source)]);
}

/** The first paragraph of the comment about a file or of each definition. Without one, what the code says. */
function purposeAnswer(query: Query, source: Source): string | undefined {
  const { facts, document, language, say } = source;
  const { name } = query;
  if (name === '') {
    const comment = headComment(document.lf, facts.exports.isPython);
    return comment ?? (facts.partial ? outlineAnswer(query, source) : undefined);
  }
  const called = calledBy(query, source.defined);
  const [one] = called;
  if (!one) return facts.imports.some(({ names }) => names.includes(name)) ? whereAnswer(query, source) : undefined;
  if (called.length > MAX_SAME || called.some(({ broken }) => broken)) return undefined;
  const said = called.flatMap((each) => {
    const comment = commentOf(each, facts, document.lf);
    const about = itemText(asItem({ name: called.length > 1 ? fullName(each) : name, line: each.line }), language);
    return comment === undefined ? [] : [`${say('says', undefined, about)}\n\n> ${comment}`];
  });
  if (said.length > 0) return said.join('\n\n');
  const isCalled = one.kind === 'class' || one.parameters !== undefined;
  const intents: Intent[] = isCalled ? ['signature', one.kind === 'class' ? 'members' : 'returns'] : [];
  const told = intents.flatMap((intent) => answerFrom({ ...query, intent }, source) ?? []);
  // A comment at the end of the line is shown with the line.
  const lines = document.lf.split('\n');
  const isRemarked = called.some(({ line }) => /\/[/*]|#[\s:]/.test(lines[line - 1] ?? ''));
  const place = whereAnswer(query, source);
  return joined([isRemarked ? place : say('noComment', undefined, quoted(name)), ...told, told[0] ?? place]);
}

function commentOf({ doc, kind, line }: Definition, { partial }: Facts, text: string): string | undefined {
  if (partial) return commentAbove(text.split('\n'), line - 1);
  // A comment at the top of a file describes the file, not a value below it.
  return !doc || (doc.from === 0 && kind === 'value') ? undefined : firstParagraph(text.slice(doc.from, doc.to), doc);
}

/** The comment of a definition, without its place. Undefined without a comment, or if several definitions differ. */
export function commentAbout(query: Query, facts: Facts, text: string): string | undefined {
  const said = calledBy(query, facts.definitions).map((each) =>
    each.broken ? undefined : commentOf(each, facts, text),
  );
  return new Set(said).size === 1 ? said[0] : undefined;
}
