/** What stands before the body of a function or a class: its parameters, what it extends. Pure. */
import type { Node } from 'web-tree-sitter';
import { NO_CODE, oneLine, present, typeText } from './factNodes.ts';

export interface Parameter {
  /** With the dots or stars of one that takes the rest; a pattern as it stands for one that is taken apart. */
  name: string;
  type?: string;
  value?: string;
}

/** From what says what it is to where its body begins. */
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
