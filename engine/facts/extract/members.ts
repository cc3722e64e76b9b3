/**
 * Reads the parts of functions and classes: parameters, base classes, fields, calls, returned values. Does not see
 * calls through a variable of another name.
 */
import type { Node } from 'web-tree-sitter';
import { FUNCTIONS, NO_CODE, oneLine, PATTERNS, type Place, present, typeText, firstCode } from './tree.ts';

export interface Parameter {
  /** As written, with the dots or stars of a rest parameter. May be a pattern. */
  name: string;
  type?: string;
  value?: string;
}

/** Offsets of the declaration without its body. */
export const headOf = (node: Node, about: Node) => ({
  from: node.startIndex,
  to: headEnd(about) ?? node.endIndex,
});

/** Where the body begins, or a comment right before it. Undefined without a body. */
function headEnd(about: Node): number | undefined {
  const body = about.childForFieldName('body');
  if (!body) return undefined;
  let first: Node = body;
  while (first.previousSibling?.type === 'comment') first = first.previousSibling;
  return first.startIndex;
}

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
  /** Offset of its class. */
  classAt?: number;
  /** In `Basket.limit = 3` the name of the object, which may be a class. */
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
    // An assigned function is a method.
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

export interface Call {
  /** Name of the function, without its object. */
  name: string;
  /** It is called on an object. `JSON.parse` does not call an imported `parse`. */
  member?: true;
  /** The name right before the dot, if there is one, or `this`. */
  on?: string;
  /** Line of the name, from 1. */
  line: number;
  /** Offset of the name. */
  at: number;
}

export const SCRIPT_CALLS = ['call_expression', 'new_expression'];
export const PYTHON_CALLS = ['call'];

/** The call at a node. Undefined if the called function has no name. */
export function callAt(node: Node): Call | undefined {
  const called = bare(node.childForFieldName('function') ?? node.childForFieldName('constructor'));
  if (!called || called.isMissing) return undefined;
  if (called.type === 'identifier') return { name: called.text, ...placeOf(called) };
  const name = called.childForFieldName('property') ?? called.childForFieldName('attribute');
  if (!name || name.isMissing) return undefined;
  const object = called.childForFieldName('object');
  const on = object?.childForFieldName('property') ?? object?.childForFieldName('attribute') ?? object;
  return {
    name: name.text,
    ...placeOf(name),
    member: true,
    ...(on && /identifier$|^(?:this|super)$/.test(on.type) ? { on: on.text } : {}),
  };
}

const placeOf = ({ startPosition, startIndex }: Node) => ({ line: startPosition.row + 1, at: startIndex });

/** Unwraps `load!(…)` and `(load)(…)`. The tree has `await load<Row>(…)` as a call of `await load`. */
function bare(called: Node | null): Node | null {
  let inside = called;
  while (
    inside &&
    /^(await_expression|non_null_expression|parenthesized_expression|instantiation_expression)$/.test(inside.type)
  )
    inside = inside.firstNamedChild;
  return inside;
}

/** The place of a returned value in the text. */
export interface Given {
  /** From 1. */
  line: number;
  from: number;
  to: number;
}

export interface Returns {
  /** The `values` are those that it yields. */
  generator: boolean;
  async: boolean;
  values: Given[];
  /** Line of the first `return` without a value, from 1. */
  bare?: number;
}

const ABSTRACT = /^@(?:[\w.]*\.)?(?:abstract\w*|overload)\b/;

/** Collects `return` and `yield` by the offset of their function. `of` must be called for the function first. */
export class ReturnStatements {
  readonly #functions = new Map<number, Returns & { returned: Given[]; yielded: Given[] }>();

  /** The returns of a function, filled while its body is walked. Undefined for abstract functions and stubs. */
  of(about: Node, { parent }: Place): Returns | undefined {
    const body = about.childForFieldName('body');
    if (
      !body ||
      isStub(body) ||
      (parent?.type === 'decorated_definition' &&
        present(parent.namedChildren).some(({ type, text }) => type === 'decorator' && ABSTRACT.test(text)))
    )
      return undefined;
    const returned: Given[] = [];
    const yielded: Given[] = [];
    const words = present(about.children)
      .filter(({ isNamed }) => !isNamed)
      .map(({ type }) => type);
    const generator = words.includes('*');
    const found = {
      generator,
      async: words.includes('async'),
      values: generator ? yielded : returned,
      returned,
      yielded,
    };
    if (!/^(statement_block|block)$/.test(body.type)) returned.push(given(body));
    this.#functions.set(about.startIndex, found);
    return found;
  }

  /** Adds a `return` or `yield` to the function around it. */
  add(node: Node, { functionAt }: Place): void {
    const found = functionAt === undefined ? undefined : this.#functions.get(functionAt);
    if (!found || !node.isNamed) return;
    const value = firstCode(node);
    if (node.type === 'return_statement') {
      if (value) found.returned.push(given(value));
      else found.bare ??= node.startPosition.row + 1;
      return;
    }
    Object.assign(found, { generator: true, values: found.yielded });
    // `yield* each` is shown as a whole.
    if (value)
      found.yielded.push(
        node.children.some((child) => child?.type === '*' || child?.type === 'from') ? given(node) : given(value),
      );
  }
}

/** The place of a value, without parentheses around it. */
function given(value: Node): Given {
  const inside = value.type === 'parenthesized_expression' && value.namedChildCount === 1 ? value.namedChild(0) : null;
  const { startIndex, endIndex, startPosition } = inside ?? value;
  return { line: startPosition.row + 1, from: startIndex, to: endIndex };
}

/** Whether a Python body is only `...` or `raise NotImplementedError`. */
function isStub(body: Node): boolean {
  if (body.type !== 'block' || body.namedChildCount > 4) return false;
  const code = present(body.namedChildren).filter(
    (child) =>
      child.type !== 'comment' && !(child.type === 'expression_statement' && child.namedChild(0)?.type === 'string'),
  );
  return code.length === 1 && (code[0]?.text === '...' || /^raise NotImplementedError\b/.test(code[0]?.text ?? ''));
}
