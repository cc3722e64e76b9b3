/** Reads parameters and base classes, and the fields that a class gets in its constructor or methods. */
import type { Node } from 'web-tree-sitter';
import { FUNCTIONS, NO_CODE, oneLine, PATTERNS, type Place, present, typeText } from './tree.ts';

export interface Parameter {
  /** As written: with the dots or stars of a rest parameter, or as a pattern. */
  name: string;
  type?: string;
  value?: string;
}

/** Offsets of the declaration without its body. */
export const headOf = (node: Node, about: Node) => ({
  from: node.startIndex,
  to: about.childForFieldName('body')?.startIndex ?? node.endIndex,
});

export function parametersOf(node: Node, isMember: boolean): Parameter[] {
  const one = node.childForFieldName('parameter');
  const parameters = one
    ? [one]
    : present(node.childForFieldName('parameters')?.namedChildren).filter(
        ({ type }) => !/separator/.test(type) && !NO_CODE.test(type),
      );
  return parameters.flatMap((child, i): Parameter[] => {
    const pattern =
      child.childForFieldName('pattern') ??
      child.childForFieldName('name') ??
      child.childForFieldName('left') ??
      (child.type === 'typed_parameter' ? child.firstNamedChild : child);
    const name = oneLine((pattern ?? child).text);
    if (name === 'this' || (i === 0 && isMember && (name === 'self' || name === 'cls'))) return [];
    const [type, value] = [
      typeText(child.childForFieldName('type')),
      child.childForFieldName('value') ?? child.childForFieldName('right'),
    ];
    return [{ name, ...(type === undefined ? {} : { type }), ...(value ? { value: oneLine(value.text) } : {}) }];
  });
}

export function heritageOf(node: Node): { bases: string[]; interfaces: string[]; broken: boolean } {
  const python = node.childForFieldName('superclasses');
  if (python)
    return {
      bases: present(python.namedChildren)
        .filter(({ type }) => type !== 'keyword_argument' && !NO_CODE.test(type))
        .map(({ text }) => oneLine(text)),
      interfaces: [],
      broken: python.hasError,
    };
  const clauses = present(node.namedChildren).flatMap((child) =>
    child.type === 'class_heritage'
      ? present(child.namedChildren)
      : child.type === 'extends_type_clause'
        ? [child]
        : [],
  );
  const bases = clauses
    .filter(({ type }) => type !== 'implements_clause' && type !== 'comment')
    .flatMap((clause) => {
      if (clause.type === 'extends_clause') return [clause.childForFieldName('value') ?? clause];
      return clause.type === 'extends_type_clause' ? present(clause.namedChildren) : [clause];
    });
  const interfaces = clauses
    .filter(({ type }) => type === 'implements_clause')
    .flatMap((clause) => present(clause.namedChildren));
  return {
    bases: bases.map(({ text }) => oneLine(text)),
    interfaces: interfaces.map(({ text }) => oneLine(text)),
    broken: clauses.some((clause) => clause.hasError),
  };
}

export interface Field {
  name: string;
  /** Offset of the class. */
  classAt?: number;
  /** The object's name in `Basket.limit = 3`, which may be a class. */
  of?: string;
  /** From 1. */
  line: number;
}

/** Fields of `constructor(private readonly path: string)`. */
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

/** Fields of `this.path = path` in a method, and of `Basket.limit = 3` anywhere. */
export function assignedField(assignment: Node, { thisAt }: Place): Field[] {
  const left = assignment.childForFieldName('left');
  if (!left) return [];
  return targetsIn(left).flatMap((target) => {
    const object = target.childForFieldName('object');
    const name = target.childForFieldName('property') ?? target.childForFieldName('attribute');
    const isOwn =
      object?.type === 'this' ||
      (object?.type === 'identifier' && target.type === 'attribute' && /^(?:self|cls)$/.test(object.text));
    // A function that is assigned there is a method.
    const found =
      isOwn && thisAt !== undefined
        ? { classAt: thisAt }
        : object?.type === 'identifier' && !FUNCTIONS.test(assignment.childForFieldName('right')?.type ?? '')
          ? { of: object.text }
          : undefined;
    return found && name ? [{ ...found, name: name.text, line: name.startPosition.row + 1 }] : [];
  });
}

/** `[this.a, this.b] = pair` has two targets. */
function targetsIn(left: Node): Node[] {
  if (left.type === 'pair_pattern') return present([left.childForFieldName('value')]).flatMap(targetsIn);
  return PATTERNS.test(left.type) ? present(left.namedChildren).flatMap(targetsIn) : [left];
}
