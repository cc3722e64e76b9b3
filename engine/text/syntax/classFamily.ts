/**
 * Finds the bases and subclasses of a class, interface or literal in its file, and whether something may give it members
 * that no declaration tells. Does not read members (ownMembers.ts).
 */
import type { Node } from 'web-tree-sitter';
import { isWritten, OWNERS } from './declarations.ts';
import { MAX_DEPTH, type ObjectTypes } from './objectTypes.ts';
import { linesWith, occurrences } from './occurrences.ts';
import type { Scopes } from './scopes.ts';

/** Parts of a body that stand for any name. */
const ANY_NAME = /^(index_signature|call_signature|construct_signature|spread_element|dictionary_splat)$/;
/** Functions that give members to their first argument. */
const ADDS = /(mixin|extend|inherit|assign|define|apply|call|proxy|setattr|vars)\w*$/i;
/** Words of a body to look at: an object that is not followed by its member, and names for any name. */
const WORDS = /\b(?:this|self)\b(?!\s*[?!]?\.)|__getattr(?:ibute)?__|__dict__/g;
/** The decorators that add no members. */
const PLAIN = /^@(dataclasses\.)?dataclass\b/;

/** An owner of members, its bases and subclasses. Undefined if one may have any member, or is not in the file. */
export function familyOf(types: ObjectTypes, owner: Node, others: readonly string[], depth = 0): Node[] | undefined {
  const name = (owner.childForFieldName('name') ?? owner.parent?.childForFieldName('name'))?.text;
  const below = name === undefined ? [] : subclassesOf(types.scopes, name, others, owner);
  if (!below || depth > MAX_DEPTH) return undefined;
  return flat([lineageOf(types, owner, others), ...below.map((one) => familyOf(types, one, others, depth + 1))]);
}

/** The classes of the file that extend a name. Undefined if the file or another one may give it members elsewhere. */
export function subclassesOf(
  scopes: Scopes,
  name: string,
  others: readonly string[],
  owner?: Node,
): Node[] | undefined {
  const places = /mixin/i.test(name) || isChangedIn(others, name) ? undefined : occurrences(scopes.text, name);
  const found: Node[] = [];
  for (const at of places ?? []) {
    const node = scopes.nodeAt(at, at + name.length);
    const parent = node?.parent;
    if (!parent || node.startIndex !== at || !/identifier$/.test(node.type)) continue;
    const around = /^(class_heritage|extends_\w+|argument_list)$/.test(parent.type) ? parent.parent : null;
    const subclass = [around, around?.parent].find((up) => OWNERS.test(up?.type ?? ''));
    if (subclass) found.push(subclass);
    else if (isFirstArgument(node, parent) || changes(parent, at, owner)) return undefined;
  }
  return places && found;
}

/** Whether a rule that begins with a name gives it members, or declares it a second time. */
function changes(rule: Node, at: number, owner: Node | undefined): boolean {
  if (/^(interface_declaration|internal_module)$/.test(rule.type)) return rule.startIndex !== owner?.startIndex;
  if (rule.startIndex !== at) return false;
  const isPrototype = rule.childForFieldName('property')?.text === 'prototype';
  const isRead = rule.parent?.type === 'member_expression' && !isWritten(rule.parent);
  return rule.type.startsWith('subscript') || (isPrototype && !isRead);
}

function isChangedIn(others: readonly string[], name: string): boolean {
  const word = name.replaceAll('$', '\\$');
  const change = new RegExp(
    `(?<![\\w$.])${word}\\.([\\w$]+\\s*=(?![=>])|prototype(?!\\.\\w+[.(]))|\\b(interface|extends)\\s+${word}\\b|` +
      `\\bclass\\s+\\w+\\(.*\\b${word}\\b`,
  );
  return others.some((text) => linesWith(text, name).some((line) => change.test(line)));
}

function lineageOf(types: ObjectTypes, owner: Node, others: readonly string[], depth = 0): Node[] | undefined {
  if (depth > MAX_DEPTH || isOpen(types.scopes, owner)) return undefined;
  const bases = basesOf(owner).map((base) => {
    const type = types.named(base);
    if (type?.kind !== 'itself' || typeof type.of === 'string') return undefined;
    return subclassesOf(types.scopes, base.text, others, type.of) && lineageOf(types, type.of, others, depth + 1);
  });
  return flat([[owner], ...bases]);
}

const flat = (lists: readonly (Node[] | undefined)[]): Node[] | undefined =>
  lists.every((list) => list !== undefined) ? lists.flat() : undefined;

function basesOf(owner: Node): Node[] {
  const heritage =
    owner.childForFieldName('superclasses') ??
    owner.namedChildren.find(({ type }) => /^(class_heritage|extends_type_clause)$/.test(type));
  return (heritage?.namedChildren ?? [])
    .flatMap((part) => (part.type === 'extends_clause' ? part.namedChildren : [part]))
    .filter(({ type, text }) => !/^(implements_clause|type_arguments|comment)$/.test(type) && text !== 'object');
}

/** Whether an owner answers for names that it does not declare. */
function isOpen(scopes: Scopes, owner: Node): boolean {
  const { type, parent, text, startIndex } = owner;
  const parts = (owner.childForFieldName('body') ?? owner).namedChildren;
  const around = /^(export_statement|decorated_definition)$/.test(parent?.type ?? '') ? parent?.children : [];
  return (
    (type === 'object' && parts.length === 0) ||
    parts.some(
      (part) => ANY_NAME.test(part.type) || part.childForFieldName('key')?.type === 'computed_property_name',
    ) ||
    [...owner.children, ...(around ?? [])].some((part) => part.type === 'decorator' && !PLAIN.test(part.text)) ||
    [...text.matchAll(WORDS)].some(({ 0: word, index }) => addsMembers(scopes, startIndex + index, word))
  );
}

function addsMembers(scopes: Scopes, at: number, word: string): boolean {
  const node = scopes.nodeAt(at, at + word.length);
  const parent = node?.parent;
  if (!parent || word.startsWith('__')) return node?.type === 'identifier';
  if (parent.type === 'subscript_expression') return true;
  const call = isFirstArgument(node, parent) ? parent.parent : null;
  return ADDS.test((call?.childForFieldName('function') ?? call?.childForFieldName('constructor'))?.text ?? '');
}

const isFirstArgument = (node: Node, { type, firstNamedChild }: Node): boolean =>
  /^argument(s|_list)$/.test(type) && firstNamedChild?.startIndex === node.startIndex;
