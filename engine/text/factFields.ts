/** What a class has besides its declared members: parameters of a constructor that are fields, and what its methods assign to `this` or `self`. Pure. */
import type { Node } from 'web-tree-sitter';
import { present } from './factNodes.ts';
import type { Place } from './factPlaces.ts';

export interface Field {
  name: string;
  /** Where the class begins in the text. */
  classAt: number;
  /** From 1. */
  line: number;
}

/** Of `constructor(private readonly path: string)`. */
export function parameterFields(method: Node, { ownerAt }: Place): Field[] {
  if (ownerAt === undefined || method.childForFieldName('name')?.text !== 'constructor') return [];
  return present(method.childForFieldName('parameters')?.namedChildren).flatMap((parameter) => {
    const name = parameter.childForFieldName('pattern') ?? parameter.childForFieldName('name');
    const isField = parameter.children.some((child) => /^(accessibility_modifier|readonly|override_modifier)$/.test(child?.type ?? ''));
    return isField && name?.type === 'identifier' ? [{ name: name.text, classAt: ownerAt, line: name.startPosition.row + 1 }] : [];
  });
}

/** Of `this.path = path`, in a method or in what keeps its `this`. */
export function assignedField(assignment: Node, { thisAt }: Place): Field[] {
  const left = assignment.childForFieldName('left');
  if (thisAt === undefined || !left) return [];
  const targets = /^(pattern_list|tuple_pattern)$/.test(left.type) ? present(left.namedChildren) : [left];
  return targets.flatMap((target) => {
    const object = target.childForFieldName('object');
    const name = target.childForFieldName('property') ?? target.childForFieldName('attribute');
    const isOwn = object?.type === 'this' || (object?.type === 'identifier' && target.type === 'attribute' && object.text === 'self');
    return isOwn && name ? [{ name: name.text, classAt: thisAt, line: name.startPosition.row + 1 }] : [];
  });
}
