/**
 * Says what the names of files are, from their facts, and whether a claim about a name holds. In doubt it holds: a name
 * that is imported, or made by a call, may be of any kind. Reads no sentences.
 */
import type { Facts } from '../facts/extract/facts.ts';
import { type Claim, WORDS } from './sentenceNames.ts';

/**
 * `local`: a variable or parameter of a function. `called`: one that may be a function. `used`: not defined here, so it
 * may be anything. `made`: defined here, but nothing tells its kind. `imported`: perhaps among others. Otherwise the kind
 * of a definition.
 */
type Kind = Facts['definitions'][number]['kind'] | 'enum' | 'local' | 'called' | 'used' | 'made' | 'imported';
export type KindsOf = (name: string) => ReadonlySet<string>;

export interface FileOfNames {
  text: string;
  facts: Facts;
}

const TYPES = ['type', 'class', 'enum'];
/** The kinds that a name can have by the word for it. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  class: ['class'],
  function: ['function', 'method', 'accessor'],
  method: ['method', 'accessor'],
  type: TYPES,
  interface: ['type'],
  enum: ['enum'],
  struct: TYPES,
  trait: TYPES,
  constant: ['value', 'local', 'accessor'],
  variable: ['value', 'local', 'accessor'],
  parameter: ['value', 'local', 'accessor'],
  table: ['table'],
  view: ['view'],
  procedure: ['procedure', 'function', 'method'],
};
const DEFINED: readonly Kind[] = ['function', 'method', 'class', 'type', 'enum'];

/** Whether a name can be what a sentence says. */
export function holds({ word, name, isDefined }: Claim, kindsOf: KindsOf): boolean {
  if (word === 'type' && WORDS.has(name)) return true;
  const kinds = kindsOf(name);
  if (word === 'import') return kinds.has('imported') || !DEFINED.some((kind) => kinds.has(kind));
  if (kinds.has('made')) return true;
  if (!isDefined && (kinds.has('used') || (kinds.has('called') && /^(function|method)$/.test(word)))) return true;
  return KINDS[word]?.some((kind) => kinds.has(kind)) ?? true;
}

/** What the names of these files are. */
export function kindsIn(files: readonly FileOfNames[]): KindsOf {
  const isPartial = files.some(({ facts }) => facts.partial);
  const isBroken = files.some(({ facts }) => facts.broken);
  // Without imports, types of other forms and constants, those may be meant.
  const others: readonly Kind[] = isBroken ? ['made'] : isPartial ? ['used', 'type', 'enum', 'value'] : ['used'];
  return (name) => {
    const known = new Set<Kind>(files.flatMap((file) => kindsInFile(name, file)));
    if (known.size === 0) return new Set(others);
    return isPartial ? new Set([...known, 'imported', 'local']) : known;
  };
}

function kindsInFile(name: string, { text, facts }: FileOfNames): Kind[] {
  const kinds = facts.definitions
    .filter((definition) => definition.name === name)
    .flatMap((definition) => kindsOfOne(definition, text, facts));
  if (facts.imports.some(({ names }) => names.includes(name))) kinds.push('imported', 'used');
  if (!facts.localNames.has(name)) return kinds;
  kinds.push('local');
  // A local name with a capital letter may be a class.
  if (/^\p{Lu}/u.test(name)) kinds.push('used');
  if (isWrapped(name, text)) kinds.push('made');
  else if (mayBeCalled(name, text)) kinds.push('called');
  return kinds;
}

function kindsOfOne(definition: Facts['definitions'][number], text: string, { partial, definitions }: Facts): Kind[] {
  const { kind, name, word, bases = [], held, at = 0, end = 0 } = definition;
  if (partial) return kind === 'class' ? ['class', 'type', 'enum'] : [kind];
  if (word) return word === 'enum' ? ['enum'] : ['type'];
  if (kind === 'type') return ['type', 'enum'];
  // In Python protocols and enums are classes.
  if (kind === 'class') return bases.length > 0 ? ['class', 'type', 'enum'] : ['class'];
  if (kind === 'value') return isPlain(text.slice(at, end)) ? ['value'] : ['value', 'made'];
  const isConstructor = kind === 'function' && definitions.some(({ owner }) => owner === name);
  return [kind, ...(held ? (['value'] as const) : []), ...(isConstructor ? (['class'] as const) : [])];
}

/** Whether a declared value is no function or class: it is written out, or only its type is given. */
function isPlain(declaration: string): boolean {
  if (declaration === '' || /=>|\bCallable\b|\bFunction\b|\blambda\b/.test(declaration)) return false;
  const [, value] = /(?<![=!<>])=(?![=>])\s*(\S.*)$/s.exec(declaration) ?? [];
  return (
    value === undefined || /^(?:[-+\d'"`[{/]|[rbf]['"]|(?:true|false|null|undefined|None|True|False)\b)/.test(value)
  );
}

/** Whether a variable is called, returned or passed on, as a function may be. */
function mayBeCalled(name: string, text: string): boolean {
  const word = `(?<![\\w$])${name.replaceAll('$', '\\$')}`;
  if (
    new RegExp(
      `${word}(?:\\?\\.)?\\(|\\breturn ${word}(?![\\w$.([])|${word}\\??\\s*:\\s*(?:\\([^()]*\\)\\s*=>|[\\w.]*(?:Callable|Function))`,
    ).test(text)
  )
    return true;
  return (text.match(new RegExp(`(?<=[(,]\\s*)${word}(?=\\s*[,)])`, 'g')) ?? []).length > 1;
}

/** Whether a variable is made from a function, as in `const save = useCallback(() => {})`. */
const isWrapped = (name: string, text: string): boolean =>
  new RegExp(
    `(?<![\\w$.])${name.replaceAll('$', '\\$')}\\s*=\\s*[\\w$.]+\\((?:async\\s*)?(?:\\(|function\\b|lambda\\b|\\w+\\s*=>)`,
  ).test(text);

const SQL =
  /\bcreate\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|materialized\s+)*(\w+)\s+(?:if\s+not\s+exists\s+)?([\w."`[\]]+)/gi;

/** What statements of SQL create. */
export function sqlKinds(text: string): KindsOf {
  const kinds = new Map<string, Set<string>>();
  for (const [, word = '', path = ''] of text.matchAll(SQL)) {
    const name = lastOf(path);
    kinds.set(name, (kinds.get(name) ?? new Set()).add(word.toLowerCase()));
  }
  return (name) => kinds.get(lastOf(name)) ?? new Set(['used']);
}

const lastOf = (path: string): string => (path.split('.').at(-1) ?? '').replaceAll(/["`[\]]/g, '').toLowerCase();
