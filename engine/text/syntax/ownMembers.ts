/** Tells what members the classes, interfaces, enums and object literals of a file declare. Does not follow bases. */
import type { Node } from 'web-tree-sitter';
import { familyOf } from './classFamily.ts';
import type { ObjectTypes } from './objectTypes.ts';
import { occurrences } from './occurrences.ts';

/** Whether an object of the file has a member. Undefined if it may have any. */
export function ownMembers(
  types: ObjectTypes,
  owner: Node,
  others: readonly string[],
): ((member: string) => boolean) | undefined {
  const family = familyOf(types, owner, others);
  return (
    family &&
    ((member) =>
      occurrences(types.scopes.text, member)?.some((at) =>
        family.some((one) => one.startIndex <= at && at < one.endIndex && declares(types, at, member, one)),
      ) ?? true)
  );
}

/** Whether a word inside an owner declares a member. */
function declares({ scopes, isScript }: ObjectTypes, at: number, word: string, owner: Node): boolean {
  const node = scopes.nodeAt(at, at + word.length);
  const parent = node?.parent;
  if (!parent || node.startIndex !== at) return false;
  if (/property_identifier(_pattern)?$/.test(node.type)) return parent.type !== 'member_expression';
  // A parameter that is a field, too.
  if (isScript)
    return parent.children.some(({ type }) => /^(accessibility_modifier|override_modifier|readonly)$/.test(type));
  // In Python, all names in the body of a class are its members.
  return node.type === 'identifier' && (scopes.at(at).functions.at(-1) ?? -1) < owner.startIndex;
}
