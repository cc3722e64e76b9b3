/** What a class has besides its declared members: parameters of a constructor that are fields, and what its methods assign to `this` or `self`. Pure. */
import type { Node } from 'web-tree-sitter';
import { PATTERNS, present } from './factNodes.ts';
import { FUNCTIONS, type Place } from './factPlaces.ts';

export interface Field {
  name: string;
  /** Where the class begins in the text. */
  classAt?: number;
  /** What it is given to by name, which may be a class: `Basket.limit = 3`. */
  of?: string;
  /** From 1. */
  line: number;
}

/** Of `constructor(private readonly path: string)`. */
export function parameterFields(method: Node, { ownerAt }: Place): Field[] {
  if (ownerAt === undefined || method.childForFieldName('name')?.text !== 'constructor') return [];
  return present(method.childForFieldName('parameters')?.namedChildren).flatMap((parameter) => {
    const name = parameter.childForFieldName('pattern') ?? parameter.childForFieldName('name');
    const isField = parameter.children.some((child) =>
      /^(accessibility_modifier|readonly|override_modifier)$/.test(child?.type ?? ''),
    );
    return isField && name?.type === 'identifier'
      ? [{ name: name.text, classAt: ownerAt, line: name.startPosition.row + 1 }]
      : [];
  });
}

/** Of `this.path = path`, in a method or in what keeps its `this`, and of `Basket.limit = 3` anywhere. */
export function assignedField(assignment: Node, { thisAt }: Place): Field[] {
  const left = assignment.childForFieldName('left');
  if (!left) return [];
  return targetsIn(left).flatMap((target) => {
    const object = target.childForFieldName('object');
    const name = target.childForFieldName('property') ?? target.childForFieldName('attribute');
    const isOwn =
      object?.type === 'this' ||
      (object?.type === 'identifier' && target.type === 'attribute' && /^(?:self|cls)$/.test(object.text));
    // What holds a function there is a method.
    const found =
      isOwn && thisAt !== undefined
        ? { classAt: thisAt }
        : object?.type === 'identifier' && !FUNCTIONS.test(assignment.childForFieldName('right')?.type ?? '')
          ? { of: object.text }
          : undefined;
    return found && name ? [{ ...found, name: name.text, line: name.startPosition.row + 1 }] : [];
  });
}

/** `[this.a, this.b] = pair` has two. */
function targetsIn(left: Node): Node[] {
  if (left.type === 'pair_pattern') return present([left.childForFieldName('value')]).flatMap(targetsIn);
  return PATTERNS.test(left.type) ? present(left.namedChildren).flatMap(targetsIn) : [left];
}
