/**
 * Finds members in new text that their object does not have, in scripts and Python. The tree of the file tells what the
 * object is (objectTypes.ts) and has (ownMembers.ts, languageMembers.ts). In doubt finds nothing.
 */
import type { Node } from 'web-tree-sitter';
import { subclassesOf } from './classFamily.ts';
import { isWritten } from './declarations.ts';
import { isMemberOfLanguage, languageMembers } from './languageMembers.ts';
import { isMadeHere } from './madeHere.ts';
import { type ObjectType, ObjectTypes } from './objectTypes.ts';
import { isLetter, occurrences } from './occurrences.ts';
import { ownMembers } from './ownMembers.ts';
import type { Scopes } from './scopes.ts';
import type { NewText } from './visibleNames.ts';

const WORD = /#?[\p{L}_$][\p{L}\p{N}_$]*/gu;
const ACCESS = /^(member_expression|attribute)$/;

interface CheckedText extends NewText {
  /** The file without the completion, whose tree is whole where unfinished new text breaks the other one. */
  before: Scopes;
  /** Where the completion begins. `start` may be a later line of it. */
  offset: number;
  /** All texts in which a member must stand whose object is not told. Undefined if it may be new. */
  everywhere: readonly string[] | undefined;
}

/** Members in new text that their object does not have, as `object.member`. */
export function unknownMembers(added: CheckedText): string[] {
  const { scopes, grammar, text, start, end } = added;
  const isScript = /^(javascript|typescript|tsx)$/.test(grammar);
  if (!isScript && grammar !== 'python') return [];
  const types = new ObjectTypes(scopes, isScript);
  // The new text may complete a word.
  let from = start;
  while (isLetter(text[from - 1]) || text[from - 1] === '#') from--;
  return [...text.slice(from, end).matchAll(WORD)].flatMap(({ 0: member, index }) => {
    const object = objectOf(scopes.nodeAt(from + index, from + index + member.length), from + index);
    if (!object || scopes.at(from + index).isBroken || isWritten(object.parent!)) return [];
    return isUnknown(added, types, object, member) ? [`${object.text}.${member}`] : [];
  });
}

/** The object, if a node is its member. */
function objectOf(node: Node | null, at: number): Node | undefined {
  const access = node?.startIndex === at ? node.parent : null;
  const object = ACCESS.test(access?.type ?? '') ? access?.childForFieldName('object') : null;
  return object && object.startIndex !== at && /^(identifier|this)$/.test(object.type) ? object : undefined;
}

function isUnknown(added: CheckedText, types: ObjectTypes, object: Node, member: string): boolean {
  const { text, start, end, everywhere } = added;
  const isSelf = object.type === 'this' || (!types.isScript && /^(self|cls)$/.test(object.text));
  const type = isSelf ? types.self(object) : types.of(object);
  if (type)
    return (
      membersOf(added, types, type)?.(member) === false &&
      !isTold(added, object.text, member, type) &&
      !isNarrowed(text, object.text)
    );
  if (!everywhere || isMemberOfLanguage(member, types.isScript) || !isMadeHere(types, object)) return false;
  const isNew = occurrences(text, member)?.every((at) => at >= start && at < end);
  return isNew === true && everywhere.every((other) => occurrences(other, member)?.length === 0);
}

/** Whether an object has a member. Undefined if it may have any. */
function membersOf(
  { others, before, offset, text }: CheckedText,
  types: ObjectTypes,
  { kind, of }: ObjectType,
): ((member: string) => boolean) | undefined {
  if (typeof of === 'string') {
    // Files may add to types of scripts.
    const changed = kind === 'itself' ? `${of}Constructor` : of;
    const isPlain = !types.isScript || kind === 'module' || subclassesOf(types.scopes, changed, others);
    return isPlain ? languageMembers(kind, of, types.isScript) : undefined;
  }
  const { startIndex: place, type } = of;
  // In the completion there is nothing old.
  const behind = place - (text.length - before.text.length);
  const at = place < offset ? place : behind < offset ? text.length : behind;
  const old = before.nodeFrom(at, new RegExp(`^${type}$`));
  const isOld = old !== undefined && !old.hasError;
  if (!isOld && of.hasError) return undefined;
  const has = isOld ? ownMembers(new ObjectTypes(before, types.isScript), old, others) : ownMembers(types, of, others);
  const { prototype } = kind === 'itself' ? Function : Object;
  return has && ((member) => has(member) || member in prototype || /^(__\w+|prototype|mro)$/.test(member));
}

/** Whether code tests what an object is. Then it may be of a subclass of another file. */
function isNarrowed(text: string, object: string): boolean {
  const name = `${object.replaceAll('$', '\\$')}(?![\\w$])`;
  const tests = '\\b(?:isinstance|(?:is|has|assert)[A-Z_]\\w*)\\(';
  return new RegExp(`(?<![\\w$.])${name}\\s+instanceof\\b|\\bmatch ${name}|${tests}${name}`).test(text);
}

/** Whether the text around the new one uses the member of this object, or quotes or writes one of the file's own. */
function isTold(
  { scopes, text, start, end, offset }: CheckedText,
  object: string,
  member: string,
  { of }: ObjectType,
): boolean {
  const isTelling = (at: number): boolean => {
    // What the completion has written may declare it.
    if (at >= offset && at < end) return at < start;
    const node = scopes.nodeAt(at, at + member.length);
    if (!node?.parent || node.startIndex !== at || node.endIndex !== at + member.length) return false;
    // Broken code may say anything.
    if (node.parent.type === 'ERROR') return true;
    if (typeof of === 'object' && (/^string_/.test(node.type) || isWritten(node.parent))) return true;
    return objectOf(node, at)?.text === object;
  };
  return occurrences(text, member)?.some(isTelling) ?? true;
}
