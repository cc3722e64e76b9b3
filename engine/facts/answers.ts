/** Answers questions about one name from the facts of a file. Gives no answer that the syntax tree leaves open. */
import { commentAbove, firstParagraph, headComment } from './extract/comments.ts';
import type { Definition } from './extract/definitions.ts';
import type { Facts } from './extract/facts.ts';
import { oneLine } from './extract/tree.ts';
import { changeAnswer, isOfChanges } from './changeAnswers.ts';
import type { FactQuery } from './factQuestions.ts';
import { exportsAnswer, importsAnswer, isMemberOf, outlineAnswer } from './lists.ts';
import { linesOf, placesOf, type Source, sentences, toldApart } from './places.ts';
import { type Part, quoted } from './words.ts';

/** With more definitions of one name, only the question where it is defined is answered. */
const MAX_SAME = 8;
const MAX_SIGNATURE = 400;
const MAX_TYPE = 200;
const MAX_VALUES = 3;
const MAX_VALUE = 100;

/** The answer to a query. Undefined if the facts of the file do not give it. */
export function answerFrom(query: FactQuery, source: Source): string | undefined {
  const { kind, name, only } = query;
  const { facts } = source;
  if (isOfChanges(kind)) return changeAnswer(kind, query, source);
  if (kind === 'entries') return undefined;
  if (facts.partial && kind === 'purpose') return partlyDescribed(query, source);
  if (facts.partial && kind !== 'outline' && kind !== 'where') return undefined;
  if (kind === 'outline') return outlineAnswer(only, source);
  if (kind === 'imports') return importsAnswer(source);
  if (kind === 'exports') return exportsAnswer(only, source);
  if (name === '') return headComment(source.text, facts.exports.isPython);
  const called = calledBy(query, facts);
  if (kind === 'callers') return callersAnswer(query, called, source);
  if (kind === 'where') return whereAnswer(query, called, source);
  if (called.length === 0 && kind === 'purpose') return importedAnswer(query, source);
  if (called.length === 0 || called.length > MAX_SAME || called.some(({ broken }) => broken)) return undefined;
  if (kind === 'purpose') return purposeAnswer(called, source);
  if (kind === 'members' && called.length > 1) return undefined;
  const answers = called.map((one) => ABOUT_DEFINITION[kind](one, source, { shown: toldApart(called, one), only }));
  return answers.every((answer) => answer !== undefined) ? sentences(answers) : undefined;
}

/** What an answer about one definition needs besides it and its file. */
interface Asked {
  /** Its name for display, with its owner where definitions of the name have different ones. */
  readonly shown: string;
  readonly only: FactQuery['only'];
}

const ABOUT_DEFINITION = {
  signature: signatureOf,
  returns: returnsOf,
  members: membersOf,
  owner: ownerOf,
  base: baseOf,
};

/** The definitions of the name, without setters that have a getter. */
function calledBy({ name, owner, within }: FactQuery, { definitions }: Facts): Definition[] {
  const called = definitions.filter(
    (each) =>
      each.name === name &&
      (owner === undefined || each.owner === owner) &&
      (within === undefined || (each.at !== undefined && within.start <= each.at && each.at < within.end)),
  );
  const getters = called.filter(({ kind, parameters }) => kind !== 'accessor' || parameters?.length === 0);
  return getters.length > 0 ? getters : called;
}

/** Where a name is defined or imported, or else where it appears. Undefined if it does not appear. */
function whereAnswer({ name, owner }: FactQuery, called: readonly Definition[], source: Source): string | undefined {
  const { words, facts } = source;
  const n = quoted(name);
  const from = owner === undefined ? facts.imports.filter(({ names }) => names.includes(name)) : [];
  const lines = [...new Set(called.map(({ line }) => line))];
  const told = [
    ...(lines.length > 0 ? [overloadsAnswer(n, called, source) ?? words.defined(n, placesOf(lines, source))] : []),
    ...from.map(({ module, line }) => words.imported(n, words.named(module, line))),
  ];
  if (told.length > 0) return told.join(called.length > 1 ? '\n\n' : ' ');
  return owner === undefined ? appearsAnswer(name, source) : undefined;
}

/** Signatures without a body above the function that they belong to are one definition. */
function overloadsAnswer(name: string, called: readonly Definition[], { words, text }: Source): string | undefined {
  const [first] = called;
  const last = called.at(-1);
  const isOne = called.every(
    (each, i) =>
      each.parameters !== undefined &&
      each.ownerAt === first?.ownerAt &&
      each.functionAt === first?.functionAt &&
      (i === called.length - 1 || each.given === undefined),
  );
  if (!isOne || !first || !last || first.line === last.line) return undefined;
  const code = (text.split('\n')[first.line - 1] ?? '').trim();
  return words.overloads(name, first.line, last.line, isShort(code) ? quoted(code) : '');
}

function appearsAnswer(name: string, source: Source): string | undefined {
  const lines = linesOf(source.text, name);
  return lines.length > 0 ? source.words.appears(quoted(name), placesOf(lines, source)) : undefined;
}

function callersAnswer({ name, owner }: FactQuery, called: readonly Definition[], source: Source): string | undefined {
  const { words, text, path } = source;
  const { calls, imports, broken } = source.facts;
  // In a tree with errors, a method of a class may look like a call.
  if (broken) return appearsAnswer(name, source);
  const from = imports.filter(({ names }) => names.includes(name));
  // After a dot, the name of a function may be that of a method of something else.
  const isFunction = called.length + from.length > 0 && called.every((each) => each.owner === undefined);
  const found = calls.filter(
    (call) => call.name === name && (owner === undefined ? !(isFunction && call.member) : call.on === owner),
  );
  const lines = [...new Set(found.map(({ line }) => line))];
  const known = [...called, ...from].map(({ line }) => line);
  const others = linesOf(text, name).filter((line) => !lines.includes(line) && !known.includes(line));
  if (owner !== undefined && lines.length === 0) return undefined;
  if (lines.length + others.length + known.length === 0) return undefined;
  const n = quoted(name);
  const isCallable =
    from.length > 0 || called.some(({ parameters, kind }) => parameters !== undefined || kind === 'class');
  if (lines.length === 0 && others.length > 0 && !isCallable) return words.appears(n, placesOf(others, source));
  // A constant that is not used is no function that is not called.
  if (lines.length + others.length === 0 && !isCallable) return words.onlyDefined(n, path);
  const also = others.length > 0 && owner === undefined ? [words.alsoAppears(placesOf(others, source))] : [];
  const first = lines.length > 0 ? words.called(n, placesOf(lines, source)) : words.notCalled(n, path);
  return [first, ...also].join(first.includes('\n') ? '\n\n' : ' ');
}

const isConstructor = ({ name }: Definition): boolean => name === 'constructor' || name === '__init__';

/** The parameters and the written declaration. For a class, those of its constructor. */
function signatureOf(one: Definition, { facts, words, text }: Source, { shown }: Asked): string | undefined {
  const constructors = facts.definitions.filter((each) => isMemberOf(each, one) && isConstructor(each));
  const about = one.kind === 'class' ? (constructors.at(-1) ?? one) : one;
  if (!about.head || about.broken || (facts.broken && one.kind === 'class')) return undefined;
  const written = oneLine(text.slice(about.head.from, about.head.to)).replace(/\s*(?:[{:;]|=>)?\s*$/, '');
  const code = written.length <= MAX_SIGNATURE && !written.includes('``') ? `: ${quoted(written)}.` : '.';
  const names = about.parameters?.map(({ name }) => quoted(name));
  return `${names ? words.takes(shown, words.and(names)) : words.declared(shown)} ${words.line(about.line)}${code}`;
}

/** The declared return type, or the written values of the `return` statements. */
function returnsOf(one: Definition, { words, text }: Source, { shown }: Asked): string | undefined {
  const { parameters, returns, given, line, brokenInside } = one;
  if (parameters === undefined || isConstructor(one)) return undefined;
  if (returns !== undefined) return isShort(returns) ? words.returns(shown, words.named(returns, line)) : undefined;
  if (!given || brokenInside) return undefined;
  const values = new Map<string, number>();
  for (const { from, to, line: at } of given.values) {
    const written = oneLine(text.slice(from, to));
    if (!values.has(written)) values.set(written, at);
  }
  const items = [...values]
    .slice(0, MAX_VALUES)
    .map(([code, at]) => words.named(code.length <= MAX_VALUE ? code : `${code.slice(0, MAX_VALUE)} …`, at));
  const of = given.async ? `${shown} (\`async\`)` : shown;
  if (items.length === 0) return given.generator ? undefined : words.returnsNothing(of, words.line(line));
  if (values.size > MAX_VALUES) items.push(words.more(values.size - MAX_VALUES));
  if (given.generator) return words.yields(of, words.and(items));
  if (given.bare !== undefined) items.push(`${words.nothingGiven} ${words.line(given.bare)}`);
  return words.returns(of, words.or(items));
}

const isShort = (type: string): boolean => type.length <= MAX_TYPE && !type.includes('`');

function membersOf(one: Definition, { facts, words }: Source, { only }: Asked): string | undefined {
  const { name, line, at, bases } = one;
  if (facts.broken || bases === undefined) return undefined;
  // Such a call may add any fields.
  const isOpen = facts.calls.some(({ on, name: to }) => (on === 'Object' && to === 'assign') || to === 'setattr');
  if (isOpen && only?.includes('fields') !== false) return undefined;
  const members = facts.definitions.filter((each) => isMemberOf(each, one));
  const namesOf = (some: readonly { name: string }[]): string[] => [...new Set(some.map((each) => each.name))];
  const accessors = namesOf(members.filter(({ kind }) => kind === 'accessor'));
  const assigned = facts.fields.filter(({ classAt, of }) => (of === undefined ? classAt === at : of === name));
  const declared = members.filter(({ kind, held }) => kind === 'value' || held);
  const methods = namesOf(members.filter(({ kind, held }) => kind === 'method' && !held));
  const fields = namesOf([...declared, ...assigned].sort((a, b) => a.line - b.line)).filter(
    (each) => !accessors.includes(each),
  );
  const of = (title: string, names: readonly string[]): string =>
    words.of(title, words.named(name, line), words.listed(names.map(quoted)));
  const isAsked = (part: Part, names: readonly string[]): boolean => only?.includes(part) ?? names.length > 0;
  const told = [
    ...(isAsked('methods', methods) ? [of(words.title('methods'), methods)] : []),
    ...(accessors.length > 0 ? [of(words.titles.accessors, accessors)] : []),
    ...(isAsked('fields', fields) ? [of(words.title('fields'), fields)] : []),
  ];
  if (told.length === 0) told.push(of(words.title('fields'), []));
  return [...told, ...(bases.length > 0 ? [words.inherits(quoted(name))] : [])].join(' ');
}

function ownerOf({ owner, name, kind, line }: Definition, { facts, words }: Source): string | undefined {
  // If brackets are missing, a function may seem to belong to another class.
  return owner === undefined || facts.broken
    ? undefined
    : `${words.owner(quoted(name), quoted(owner), kind === 'method')} ${words.line(line)}.`;
}

function baseOf({ bases, interfaces = [], name, line }: Definition, { words }: Source): string | undefined {
  if (bases === undefined || !bases.every(isShort)) return undefined;
  const told = (some: readonly string[]) => words.listed(some.map(quoted));
  const also = interfaces.length > 0 ? words.implements(told(interfaces)) : '';
  return `${words.base(quoted(name), told(bases))}${also} ${words.line(line)}.`;
}

/** The first paragraph of the comment of each definition, word for word. */
function purposeAnswer(called: readonly Definition[], source: Source): string | undefined {
  const { text, words } = source;
  const said = called.flatMap((one) => {
    const paragraph = commentOf(one, text);
    const about = `${toldApart(called, one)} ${words.line(one.line)}`;
    return paragraph === undefined ? [] : [`${words.says(about)}\n\n> ${paragraph}`];
  });
  return said.length > 0 ? said.join('\n\n') : undescribed(called, source);
}

/** What the code says of a definition without a comment. */
function undescribed(called: readonly Definition[], source: Source): string | undefined {
  const { words } = source;
  const [one] = called;
  if (!one) return undefined;
  const about = { shown: quoted(one.name), only: undefined };
  const told =
    one.kind === 'class'
      ? [signatureOf(one, source, about), membersOf(one, source, about)]
      : [signatureOf(one, source, about), returnsOf(one, source, about)];
  return [words.noComment(quoted(one.name)), ...told.filter((each) => each !== undefined)].join(' ');
}

/** A name that only an import defines. */
function importedAnswer({ name }: FactQuery, { facts, words }: Source): string | undefined {
  const from = facts.imports.filter(({ names }) => names.includes(name));
  return from.length > 0
    ? from.map(({ module, line }) => words.imported(quoted(name), words.named(module, line))).join(' ')
    : undefined;
}

/** The comment right above a definition, or its place, if only definitions are known. For a file its outline. */
function partlyDescribed({ name, only }: FactQuery, source: Source): string | undefined {
  const { facts, words, text } = source;
  if (name === '') return headComment(text, false) ?? outlineAnswer(only, source);
  const [one, ...others] = facts.definitions.filter((each) => each.name === name);
  if (!one || others.length > 0) return undefined;
  const paragraph = commentAbove(text.split('\n'), one.line - 1);
  return paragraph === undefined
    ? `${words.noComment(quoted(name))} ${words.defined(quoted(name), placesOf([one.line], source))}`
    : `${words.says(`${quoted(name)} ${words.line(one.line)}`)}\n\n> ${paragraph}`;
}

function commentOf({ doc, kind }: Definition, text: string): string | undefined {
  // A comment at the top of a file describes the file, not a value below it.
  return !doc || (doc.from === 0 && kind === 'value') ? undefined : firstParagraph(text.slice(doc.from, doc.to), doc);
}

/** The comment of a definition, without its place. Undefined without a comment, or if several definitions differ. */
export function commentAbout(query: FactQuery, facts: Facts, text: string): string | undefined {
  const said = calledBy(query, facts).map((each) => (each.broken ? undefined : commentOf(each, text)));
  return new Set(said).size === 1 ? said[0] : undefined;
}
