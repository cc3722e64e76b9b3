/** Answers questions from the facts of one file. Gives no answer that the syntax tree leaves open. */
import { lineNumbersOf, occursIn } from '../text/syntax/occurrences.ts';
import { commentOf, headComment } from './extract/comments.ts';
import { areOverloads, constructorsOf, type Definition, firsts, withoutConstructors } from './extract/definitions.ts';
import { callerOf, NO_FACTS } from './extract/facts.ts';
import { oneLine } from './extract/tree.ts';
import type { Intent } from './intents.ts';
import { basesAnswer, exportsAnswer, importsAnswer, membersAnswer, outlineAnswer } from './lists.ts';
import type { Query } from './questions.ts';
import { asItem, fullName, type Item, joined, quoted, type Source } from './sentences.ts';

/** With more definitions of one name, only the question where it is defined is answered. */
const MAX_SAME = 8;

export type Answer = (query: Query, source: Source) => string | undefined;

const ANSWERS: Readonly<Record<Intent, Answer>> = {
  outline: outlineAnswer,
  imports: importsAnswer,
  exports: exportsAnswer,
  members: ofEach(membersAnswer),
  base: ofEach(basesAnswer),
  purpose: purposeAnswer,
  where: whereAnswer,
  signature: ofEach(signatureOf),
  returns: ofEach(returnsOf),
  callers: callersAnswer,
  changes: changesAnswer,
  throws: throwsAnswer,
};
/** Intents that need facts of TypeScript, JavaScript or Python. */
const NOT_OF_OTHERS: readonly Intent[] = ['imports', 'exports', 'base', 'returns'];

/** The answer to a query. Undefined if the facts of the file do not give it. */
export function answerFrom(query: Query, source: Source): string | undefined {
  const { intent, name } = query;
  const { isData, partial } = source.facts;
  const isOther = source.facts === NO_FACTS ? intent !== 'where' : partial && NOT_OF_OTHERS.includes(intent);
  if (!isData) return isOther ? undefined : ANSWERS[intent](query, source);
  // A data file is for what it defines.
  if (name === '') return intent === 'outline' || intent === 'purpose' ? outlineAnswer(query, source) : undefined;
  return intent === 'where' || intent === 'changes' ? whereAnswer(query, source) : undefined;
}
/** Without what is not part of it in all languages: `$total`, `*rest`, `count?`. */
const bareOf = (name: string): string => name.replace(/^(?:\$|\.\.\.|\*+)|\?$/g, '');

/** The definitions of the name, without setters that have a getter. `c` names `s.c` in a data file. */
function calledBy({ name, owner, within }: Query, { facts }: Source): Definition[] {
  const called = facts.definitions.filter(
    (each) =>
      (each.name === name || (facts.isData && each.name.endsWith(`.${name}`))) &&
      (facts.isData || owner === undefined || each.owner === owner) &&
      (within === undefined || (each.at !== undefined && within.start <= each.at && each.at < within.end)),
  );
  const getters = called.filter(({ kind, parameters }) => kind !== 'accessor' || parameters?.length === 0);
  return getters.length > 0 ? getters : called;
}

/** The modules that the name is imported from. */
const importsOf = ({ name, owner }: Query, { facts }: Source): Item[] =>
  facts.imports
    .filter(({ names }) => owner === undefined && names.includes(name))
    .map(({ module, line }) => asItem({ name: module, line }));

/** What is said of each definition of a name. */
function ofEach(answer: (one: Definition, source: Source, about: string, query: Query) => string | undefined): Answer {
  return (query, source) => {
    const called = withoutConstructors(calledBy(query, source));
    if (called.length === 0 || called.length > MAX_SAME || called.some(({ broken }) => broken)) return undefined;
    const said = called.map((one) => answer(one, source, fullName(one, source), query));
    return said.includes(undefined) ? undefined : joined(said);
  };
}

/** Where a name is defined or imported, or else where it appears. Undefined if it does not appear. */
function whereAnswer(query: Query, source: Source): string | undefined {
  const { name, owner } = query;
  const called = calledBy(query, source);
  const [one] = called;
  const about = one && (called.length === 1 || areOverloads(called)) ? fullName(one, source) : quoted(name);
  const title = areOverloads(called) ? 'overloaded' : 'defined';
  const defined = source.sayAny(title, source.placesOf(called.map(({ line }) => line)), about);
  const imported = source.sayAny('imported', importsOf(query, source), quoted(name));
  const appear = owner === undefined ? lineNumbersOf(source.document.lf, name) : [];
  return joined([defined, imported]) ?? source.sayAny('appears', source.placesOf(appear), about);
}

/** The written declaration. For a class, that of its constructor. */
function signatureOf(one: Definition, source: Source, about: string, { parameter }: Query): string | undefined {
  const { definitions, partial, broken } = source.facts;
  // The class may declare it with another type.
  if (definitions.some(({ name, owner }) => owner === one.name && name === parameter)) return undefined;
  const asked = one.kind === 'class' ? constructorsOf(one, definitions, partial) : [one];
  const isKnown = asked.length > 0 && asked.every((each) => each.head && !each.broken);
  if (!isKnown || (broken && one.kind === 'class')) return undefined;
  const items = asked.map(({ head, line }) => {
    const code = oneLine(source.document.lf.slice(head?.from, head?.to)).replace(/\s*(?:[{:;=]|=>)?\s*$/, '');
    return { lines: [line], code, detail: quoted(code) };
  });
  if (parameter !== undefined && !items.some(({ code }) => occursIn(code, parameter))) return undefined;
  return source.say('signature', about, items);
}

/** The declared return type, or the written values of the `return` statements. Not what a generator yields. */
function returnsOf(one: Definition, source: Source, about: string): string | undefined {
  const { parameters, returns, given, line, brokenInside } = one;
  if (parameters === undefined || /^(?:constructor|__init__)$/.test(one.name)) return undefined;
  if (returns !== undefined) return source.say('returns', about, [asItem({ name: returns, line })]);
  if (!given || brokenInside || given.generator) return undefined;
  const values = given.values.map((each) => ({ ...each, name: oneLine(source.document.lf.slice(each.from, each.to)) }));
  const items: Item[] = firsts(values).map(asItem);
  if (given.bare !== undefined || items.length === 0)
    items.push({ text: source.say('nothing'), lines: [given.bare ?? line] });
  const title = values.length > 0 ? 'returns' : 'returnsNo';
  return source.say(title, given.async ? `${about} (\`async\`)` : about, items);
}

/** The functions that call a name, and the other lines that have it. */
function callersAnswer(query: Query, source: Source): string | undefined {
  const { name } = query;
  const { facts, document } = source;
  const [called, from, about] = [calledBy(query, source), importsOf(query, source), quoted(name)];
  const appear = lineNumbersOf(document.lf, name);
  // In a tree with errors, a method of a class may look like a call.
  if (facts.broken) return source.sayAny('appears', source.placesOf(appear), about);
  // After a dot, the name of a function may be that of a method of something else.
  const isFunction = called.length + from.length > 0 && called.every((each) => each.owner === undefined);
  const calls = facts.calls.filter((call) => call.name === name && !(isFunction && call.member));
  const acts = calls.map(({ member, on = '…', ...call }) => {
    const isOwn = !member || /^(?:this|self|cls|super)$/.test(on);
    return { ...call, within: callerOf(call, facts), detail: isOwn ? undefined : quoted(`${on}.${name}`) };
  });
  const seen = [...acts, ...called].map(({ line }) => line).concat(from.flatMap(({ lines }) => lines));
  const others = source.placesOf(appear.filter((line) => !seen.includes(line)));
  const callers = source.sayAny('called', source.byFunction(acts), about);
  const more = source.sayAny(callers ? 'alsoAppears' : 'appears', others, about);
  return joined([callers, more]) ?? source.say('noUse', about);
}

/** Where a name gets its first value and other values, and where it is deleted. */
function changesAnswer({ name, owner }: Query, source: Source): string | undefined {
  const { broken, changes } = source.facts;
  const [assigned, ...others] = (['assigned', 'first', 'deleted'] as const).map((how) => {
    const writes = changes.writes.filter((each) => each.name === bareOf(name) && each.how === how);
    const acts = writes.map(({ as, ...each }) => ({ ...each, detail: as && quoted(as) }));
    return source.sayAny(how, source.byFunction(acts), quoted(name));
  });
  // With errors in the tree, some assignments may be missing. The classes of objects are not known.
  if (owner !== undefined || (broken && assigned === undefined)) return undefined;
  return joined([assigned ?? source.say('notAssigned', quoted(name)), ...others, source.partly()]);
}

/** What throws an exception of this name. Else what the file, or the function or class of this name, throws. */
function throwsAnswer(query: Query, source: Source): string | undefined {
  const { name, owner } = query;
  const { broken, changes } = source.facts;
  const thrown = name === '' ? [] : changes.throws.filter((each) => each.name === bareOf(name));
  if (thrown.length > 0) return source.say('thrown', quoted(name), source.byFunction(thrown));
  if (name !== '' && !changes.named.some((each) => each.name === name)) return whereAnswer(query, source);
  const isAsked = (path: string): boolean =>
    owner === undefined ? path.split('.').includes(name) : path === `${owner}.${name}`;
  const own = changes.throws.filter(({ within = '' }) => name === '' || isAsked(within));
  // With errors in the tree, some may be missing.
  if (broken && (own.length === 0 || name !== '')) return undefined;
  const acts = own.map((one) => ({ ...one, detail: one.name === undefined ? source.say('aValue') : quoted(one.name) }));
  const about = quoted(name === '' ? source.document.path : name);
  const said = source.sayAny('throws', source.byFunction(acts), about) ?? source.say('noThrows', about);
  return joined([said, source.say('mayThrow'), source.partly()]);
}

/** The first paragraph of the comment about a file or of each definition. Without one, what the code says. */
function purposeAnswer(query: Query, source: Source): string | undefined {
  const { facts, document } = source;
  const { name } = query;
  const head = headComment(document.lf, facts.exports.isPython);
  if (name === '') return head ?? (facts.partial ? outlineAnswer(query, source) : undefined);
  const called = withoutConstructors(calledBy(query, source));
  const [one] = called;
  if (!one) return importsOf(query, source).length > 0 ? whereAnswer(query, source) : undefined;
  if (called.length > MAX_SAME || called.some(({ broken }) => broken)) return undefined;
  const said = called.flatMap((each) => {
    const comment = commentOf(each, facts.partial, document.lf);
    const about = source.itemText({ text: fullName(each, source), lines: [each.line] });
    return comment === undefined ? [] : [`${source.say('says', about)}\n\n> ${comment}`];
  });
  if (said.length > 0) return said.join('\n\n');
  const more: Intent[] = ['where', one.kind === 'class' ? 'members' : 'returns'];
  const told = more.map((intent) => answerFrom({ ...query, intent }, source));
  return joined([source.say('noComment', quoted(name)), ...told]);
}
