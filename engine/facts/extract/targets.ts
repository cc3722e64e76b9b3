/** Finds the names in the target of an assignment, in the trees of all grammars. Does not find assignments. */
import type { Node } from 'web-tree-sitter';
import { oneLine, present } from './tree.ts';

const NAMES =
  /^(?:\w*identifier(?:_pattern)?|variable_name|variable|name|simple_name|word|(?:instance|class|global)_variable|constant)$/;
const PARTS = /^(?:subscript\w*|element_access_expression|array_access|index_expression|element_reference)$/;
const LISTS = /(?:pattern|_list|tuple\w*|list_literal|left_assignment_list|^argument)$/;

/** A name that is written. */
export interface Target {
  name: Node;
  /** The target as written, if it is a part of the name, or of another object than the function's own. */
  as?: string;
}

/** The names in what is written. `a.b` writes `b`, and `a[0]` writes `a`. */
export function namesOf(target: Node): Target[] {
  if (target.type === 'qualified_identifier') return namesOf(target.childForFieldName('name') ?? target);
  if (NAMES.test(target.type)) return [{ name: target }];
  if (PARTS.test(target.type))
    return within(target, target.childForFieldName('object') ?? partOf(target) ?? target.namedChild(0));
  const member =
    target.childForFieldName('property') ??
    target.childForFieldName('attribute') ??
    target.childForFieldName('field') ??
    (target.type === 'call' ? target.childForFieldName('method') : null) ??
    (/access/.test(target.type) ? target.childForFieldName('name') : null) ??
    (target.type === 'member_access' ? target.namedChild(target.namedChildCount - 1) : null);
  if (member) return within(target, member);
  if (target.type === 'pair_pattern') return namesIn(target.childForFieldName('value'));
  if (/assignment_pattern$/.test(target.type)) return namesIn(target.childForFieldName('left'));
  if (LISTS.test(target.type)) return present(target.namedChildren).flatMap(namesOf);
  return namesIn(
    target.childForFieldName('argument') ?? target.childForFieldName('declarator') ?? target.namedChild(0),
  );
}

const namesIn = (node: Node | null): Target[] => (node ? namesOf(node) : []);

/** A longer target is cut. */
const MAX_TARGET = 60;
const OWN = /^[$@]*(?:this|self|cls)\W+[\w$]+$/;

/** The names in a part of a target. */
function within(whole: Node, part: Node | null): Target[] {
  const as = oneLine(whole.text);
  const cut = as.length <= MAX_TARGET ? as : `${as.slice(0, MAX_TARGET)} …`;
  return namesIn(part).map(({ name }) => (OWN.test(as) ? { name } : { name, as: cut }));
}

const partOf = (node: Node): Node | null =>
  node.childForFieldName('value') ??
  node.childForFieldName('expression') ??
  node.childForFieldName('array') ??
  node.childForFieldName('operand') ??
  node.childForFieldName('argument');

/** The name without the marks that some languages put before it. */
export const bare = (name: string): string => name.replace(/^(?:\$(?:\w+:)?|@{1,2})/, '');
