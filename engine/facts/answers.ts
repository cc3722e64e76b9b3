/** Answers questions from the facts of one file. Gives no answer that the syntax tree leaves open. */
import { lineNumbersOf } from '../text/syntax/occurrences.ts';
import { commentAbove, firstParagraph, headComment } from './extract/comments.ts';
import type { Definition } from './extract/definitions.ts';
import { callerOf, type Facts } from './extract/facts.ts';
import { oneLine } from './extract/tree.ts';
import type { Intent } from './intents.ts';
import { baseAnswer, exportsAnswer, importsAnswer, isMemberOf, membersAnswer, outlineAnswer, partly } from './lists.ts';
import type { Query } from './questions.ts';
import { type Item, itemText, joined, quoted } from './sentences.ts';
import { asItem, type Defined, fullName, placesOf, shown, type Source } from './source.ts';

/** With more definitions of one name, only the question where it is defined is answered. */
const MAX_SAME = 8;
const MAX_SIGNATURE = 400;
const MAX_VALUES = 3;
const MAX_VALUE = 100;

type Answer = (query: Query, source: Source) => string | undefined;
const ANSWERS: Readonly<Record<Intent, Answer>> = {
  outline: outlineAnswer,
  imports: importsAnswer,
  exports: exportsAnswer,
  purpose: purposeAnswer,
  where: whereAnswer,
  signature: ofEach(signatureOf),
  parameter: parameterAnswer,
  returns: ofEach(returnsOf),
  callers: callersAnswer,
  members: (query, source) => ofOne(calledBy(query, source.defined), (one) => membersAnswer(query, one, source)),
  base: ofEach(baseAnswer),
  changes: changesAnswer,
  thrown: thrownAnswer,
  throws: throwsAnswer,
};
/** Intents for a language of which only definitions and changes are read, and for data files. */
const OF_OTHERS: readonly Intent[] = ['outline', 'purpose', 'where', 'changes', 'thrown', 'throws'];
const OF_DATA: Readonly<Partial<Record<Intent, Answer>>> = {
  outline: outlineAnswer,
  where: whereAnswer,
  changes: whereAnswer,
};

/** The answer to a query. Undefined if the facts of the file do not give it. */
export function answerFrom(query: Query, source: Source): string | undefined {
  const { intent, name } = query;
  // A data file is for what it defines.
  if (source.isData) return OF_DATA[intent === 'purpose' && name === '' ? 'outline' : intent]?.(query, source);
  return source.facts.partial && !OF_OTHERS.includes(intent) ? undefined : ANSWERS[intent](query, source);
}

/** Whether the name is known from the syntax tree, or from the lines of a data file. */
export function knows({ facts, defined }: Source, { intent, name }: Query): boolean {
  const { writes, throws } = facts.changes;
  const changed = intent === 'changes' || intent === 'thrown' ? [...writes, ...throws] : [];
  return (
    calledBy({ intent, name }, defined).length > 0 ||
    [...facts.fields, ...changed].some((each) => each.name === name) ||
    facts.imports.some(({ names }) => names.includes(name)) ||
    (!/^\p{Ll}+$/u.test(name) && facts.localNames.has(name))
  );
}

/** The definitions of the name, without setters that have a getter. `c` names `s.c` in a data file. */
function calledBy({ name, owner, within }: Query, defined: readonly Defined[]): Defined[] {
  const called = defined.filter((each) =>
    each.entry
      ? each.name === name || each.name.endsWith(`.${name}`)
      : each.name === name &&
        (owner === undefined || each.owner === owner) &&
        (within === undefined || (each.at !== undefined && within.start <= each.at && each.at < within.end)),
  );
  const getters = called.filter(({ kind, parameters }) => kind !== 'accessor' || parameters?.length === 0);
  return getters.length > 0 ? getters : called;
}

function ofOne([one, ...others]: readonly Defined[], answer: (one: Defined) => string | undefined): string | undefined {
  return one && others.length === 0 && !one.broken ? answer(one) : undefined;
}

/** What is said of each definition of a name. `about` has the owner where the definitions have different ones. */
function ofEach(answer: (one: Defined, source: Source, about: string) => string | undefined): Answer {
  return (query, source) => {
    const called = calledBy(query, source.defined);
    if (called.length === 0 || called.length > MAX_SAME || called.some(({ broken }) => broken)) return undefined;
    const hasOwners = new Set(called.map(({ owner }) => owner)).size > 1;
    const said = called.map((one) => answer(one, source, quoted(hasOwners ? fullName(one) : one.name)));
    return said.includes(undefined) ? undefined : joined(said);
  };
}

/** Where a name is defined or imported, or else where it appears. Undefined if it does not appear. */
function whereAnswer(query: Query, source: Source): string | undefined {
  const { name, owner } = query;
  const { facts, document, say } = source;
  const called = calledBy(query, source.defined);
  const from = owner === undefined ? facts.imports.filter(({ names }) => names.includes(name)) : [];
  const [one] = called;
  // If brackets are missing, a method may seem to belong to another class.
  const about = one && called.length === 1 && !facts.broken ? fullName(one) : name;
  const places = (lines: readonly number[]) => placesOf(lines, source);
  const modules = from.map(({ module, line }) => asItem({ name: module, line }));
  const lines = one || from.length > 0 || owner !== undefined ? [] : lineNumbersOf(document.lf, name);
  const said = [
    one ? [say('defined', places(called.map(({ line }) => line)), quoted(about))] : [],
    from.length > 0 ? [say('imported', modules, quoted(name))] : [],
    lines.length > 0 ? [say('appears', places(lines), quoted(name))] : [],
  ].flat();
  return said.length > 0 ? joined(said) : undefined;
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

/** The signature of the only function of the name that has the parameter. */
function parameterAnswer(query: Query, source: Source): string | undefined {
  const isIt = ({ name }: { name: string }) => name.replace(/^(?:\.\.\.|\*+)|\?$/g, '') === query.parameter;
  const having = calledBy(query, source.defined).filter(({ parameters }) => parameters?.some(isIt));
  return ofOne(having, (one) => signatureOf(one, source, quoted(one.name)));
}

/** The declared return type, or the written values of the `return` statements. */
function returnsOf(one: Defined, { document, say }: Source, about: string): string | undefined {
  const { parameters, returns, given, line, brokenInside } = one;
  if (parameters === undefined || isConstructor(one)) return undefined;
  if (returns !== undefined) return say('returns', [asItem({ name: returns, line })], about);
  if (!given || brokenInside || (given.generator && given.values.length === 0)) return undefined;
  const values = new Map<string, number>();
  for (const { from, to, line: at } of given.values) {
    const code = oneLine(document.lf.slice(from, to));
    values.set(code, values.get(code) ?? at);
  }
  const items: Item[] = [...values]
    .slice(0, MAX_VALUES)
    .map(([code, at]) => asItem({ name: code.length <= MAX_VALUE ? code : `${code.slice(0, MAX_VALUE)} …`, line: at }));
  if (values.size > MAX_VALUES) items.push({ text: say('more', undefined, `${values.size - MAX_VALUES}`), lines: [] });
  if (!given.generator && (given.bare !== undefined || items.length === 0))
    items.push({ text: say('nothing'), lines: [given.bare ?? line] });
  const title = given.generator ? 'yields' : values.size > 0 ? 'returns' : 'returnsNo';
  return say(title, items, given.async ? `${about} (\`async\`)` : about);
}

/** The functions that call a name, and the other lines that have it. */
function callersAnswer(query: Query, source: Source): string | undefined {
  const { name, owner } = query;
  const { facts, document, say } = source;
  const [called, about] = [calledBy(query, source.defined), quoted(name)];
  const appear = lineNumbersOf(document.lf, name);
  // In a tree with errors, a method of a class may look like a call.
  if (facts.broken) return appear.length > 0 ? say('appears', placesOf(appear, source), about) : undefined;
  const from = facts.imports.filter(({ names }) => names.includes(name));
  // After a dot, the name of a function may be that of a method of something else.
  const isFunction = called.length + from.length > 0 && called.every((each) => each.owner === undefined);
  const calls = facts.calls.filter(
    (call) => call.name === name && (owner === undefined ? !(isFunction && call.member) : call.on === owner),
  );
  const seen = [...calls, ...called, ...from].map(({ line }) => line);
  const others = appear.filter((line) => !seen.includes(line));
  if ((owner !== undefined && calls.length === 0) || seen.length + others.length === 0) return undefined;
  const isCallable = from.length > 0 || called.some(({ parameters, kind }) => parameters || kind === 'class');
  if (calls.length === 0 && !isCallable)
    return others.length > 0 ? say('appears', placesOf(others, source), about) : say('onlyDefined', undefined, about);
  if (calls.length + others.length + called.length === 0) return say('onlyImported', undefined, about);
  // The types of objects are not known.
  const owners = called.map((each) => each.owner);
  const isUnsure = calls.some(
    ({ member, on = '' }) =>
      member && owners.some(Boolean) && !/^(?:this|self|cls|super)$/.test(on) && !owners.includes(on),
  );
  const by = calls.map((call) => ({ line: call.line, within: callerOf(call, facts) }));
  return joined([
    calls.length > 0 ? say('called', byFunction(by, source), about) : say('notCalled', undefined, about),
    others.length > 0 && owner === undefined ? say('alsoAppears', placesOf(others, source)) : undefined,
    isUnsure ? say('otherObject', undefined, about) : undefined,
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
  const first = all.filter(({ declares }) => declares);
  // With errors in the tree, some assignments may be missing.
  if (later.length === 0 && facts.broken) return undefined;
  const isChanged = later.some(({ within = '' }) => within !== '' && !/\b(?:constructor|__init__)$/.test(within));
  const calls = isChanged ? [] : facts.calls.filter(({ on }) => on === name);
  const places = (some: readonly { line: number }[]) =>
    placesOf(
      some.map(({ line }) => line),
      source,
    );
  return joined([
    later.length > 0
      ? say('assigned', byFunction(later, source), quoted(name))
      : say('notAssigned', undefined, quoted(name)),
    first.length > 0 ? say('firstValue', places(first)) : undefined,
    calls.length > 0 ? say('callsOn', places(calls)) : undefined,
    partly(source),
  ]);
}

/** `$` before a name is not part of it in all languages. */
const bareOf = (name: string): string => name.replace(/^\$/, '');

/** The functions that throw an exception of this name. */
function thrownAnswer({ name }: Query, source: Source): string | undefined {
  const { facts, document, say } = source;
  const thrown = facts.changes.throws.filter((each) => each.name === bareOf(name));
  if (thrown.length > 0) return say('thrown', byFunction(thrown, source), quoted(name));
  const others = lineNumbersOf(document.lf, name);
  return facts.broken
    ? undefined
    : joined([say('notThrown', undefined, quoted(name)), say('alsoAppears', placesOf(others, source))]);
}

/** What the file throws, or the functions of a name. */
function throwsAnswer({ name, owner }: Query, source: Source): string | undefined {
  const { facts, document, say } = source;
  const { named, throws } = facts.changes;
  const called = named.filter(
    (each) => each.name === name && each.kind !== 'class' && (owner === undefined || each.owner === owner),
  );
  if (name === '' ? document.lf.trim() === '' : called.length === 0) return undefined;
  const own = throws.filter(({ within }) => name === '' || called.some((each) => fullName(each) === within));
  // With errors in the tree, some may be missing.
  if (facts.broken && (own.length === 0 || name !== '')) return undefined;
  const about = quoted(name === '' ? document.path : name);
  const items = own.map((each) => {
    const what = each.name === undefined ? say('aValue') : quoted(each.name);
    const [by] = byFunction([each], source);
    return { lines: [], ...by, detail: each.inner ? `${what} ${say('inner')}` : what };
  });
  return joined([
    own.length > 0 ? say('throws', items, about) : say('noThrows', undefined, about),
    say('mayThrow'),
    partly(source),
  ]);
}

/** The first paragraph of the comment about a file or of each definition. Without one, what the code says. */
function purposeAnswer(query: Query, source: Source): string | undefined {
  const { facts, document, language, say } = source;
  const { name } = query;
  if (name === '')
    return (
      headComment(document.lf, facts.exports.isPython) ?? (facts.partial ? outlineAnswer(query, source) : undefined)
    );
  const called = calledBy(query, source.defined);
  const [one] = called;
  if (!one) return facts.imports.some(({ names }) => names.includes(name)) ? whereAnswer(query, source) : undefined;
  if (called.length > MAX_SAME || called.some(({ broken }) => broken)) return undefined;
  const said = called.flatMap((each) => {
    const comment = facts.partial ? commentAbove(document.lf.split('\n'), each.line - 1) : commentOf(each, document.lf);
    const about = itemText(asItem({ name: called.length > 1 ? fullName(each) : name, line: each.line }), language);
    return comment === undefined ? [] : [`${say('says', undefined, about)}\n\n> ${comment}`];
  });
  if (said.length > 0) return said.join('\n\n');
  const isCalled = one.kind === 'class' || one.parameters !== undefined;
  const intents: Intent[] = isCalled ? ['signature', one.kind === 'class' ? 'members' : 'returns'] : ['where'];
  const told = intents.map((intent) => answerFrom({ ...query, intent }, source));
  return joined([
    say('noComment', undefined, quoted(name)),
    ...(told.some(Boolean) ? told : [whereAnswer(query, source)]),
  ]);
}

function commentOf({ doc, kind }: Definition, text: string): string | undefined {
  // A comment at the top of a file describes the file, not a value below it.
  return !doc || (doc.from === 0 && kind === 'value') ? undefined : firstParagraph(text.slice(doc.from, doc.to), doc);
}

/** The comment of a definition, without its place. Undefined without a comment, or if several definitions differ. */
export function commentAbout(query: Query, { definitions }: Facts, text: string): string | undefined {
  const said = calledBy(query, definitions).map((each) => (each.broken ? undefined : commentOf(each, text)));
  return new Set(said).size === 1 ? said[0] : undefined;
}
