/**
 * Runs a parsed Jinja template as the reference does: the interpreter of the library, with Python's text, comparisons
 * and loops, and the filters and methods that it lacks. What neither knows is an error, never other text.
 */
import { Interpreter, type parse } from '@huggingface/jinja';
import { FILTERS, METHODS } from './jinjaBuiltins.ts';
import { WITH } from './jinjaSource.ts';
import { isTrue, iterated, newScope, type Scope, toCall, toList, toTuple, toValue } from './jinjaValues.ts';
import { equal, float, formatted, str, type Value } from './pythonText.ts';

/** A node of the tree. */
interface Node {
  type: string;
  // biome-ignore lint/suspicious/noExplicitAny: the library does not export its types
  [field: string]: any;
}

/** The methods of the library that are replaced. Its types call them private. */
interface Library {
  evaluate(node: Node, scope: Scope): Value;
  evaluateArguments(args: Node[], scope: Scope): [Value[], Map<string, Value>];
  evaluateBlock(nodes: Node[], scope: Scope): Value;
  evaluateBinaryExpression(node: Node, scope: Scope): Value;
  evaluateCallExpression(node: Node, scope: Scope): Value;
  evaluateMemberExpression(node: Node, scope: Scope): Value;
  evaluateTestExpression(node: Node, scope: Scope): Value;
  applyFilter(operand: Value, filter: Node, scope: Scope): Value;
  run(program: ReturnType<typeof parse>): Value;
}

const Base = Interpreter as unknown as new (scope: Scope) => Library;
/** `break` or `continue`, with what the iteration wrote before it. */
class LoopEnd extends Error {
  written = '';
  readonly ends: boolean;

  constructor(ends: boolean) {
    super('break or continue outside of a loop');
    this.ends = ends;
  }
}

/** Longest text that `*` makes, because a template is untrusted. */
const MAX_REPEATED = 100_000;
/** Statements that write nothing. */
const SILENT = new Set(['Set', 'Macro', 'Comment', 'Break', 'Continue']);
const COMPARISONS = new Set(['<', '>', '<=', '>=']);

/** @throws Error with the message of the template, or the reason */
export function run(program: ReturnType<typeof parse>, variables: Record<string, unknown>): string {
  const scope = newScope();
  const all = { false: false, true: true, none: null, False: false, True: true, None: null, ...variables };
  for (const [name, value] of Object.entries(all)) scope.setVariable(name, toValue(value));
  scope.setVariable(
    WITH,
    toCall((_, inner) => inner.lookupVariable('caller').value([], inner)),
  );
  return new PythonInterpreter(scope).run(program).value as string;
}

class PythonInterpreter extends Base {
  override evaluate(node: Node, scope: Scope): Value {
    if (node === undefined || node === null) return toValue(undefined);
    if (node.type === 'Held') return node.value as Value;
    if (node.type === 'Break' || node.type === 'Continue') throw new LoopEnd(node.type === 'Break');
    if (node.type === 'For') return this.#loop(node, scope);
    return super.evaluate(node, scope);
  }

  override evaluateBlock(nodes: Node[], scope: Scope): Value {
    let text = '';
    try {
      for (const node of nodes) {
        const value = this.evaluate(node, scope);
        if (!SILENT.has(node.type)) text += str(value);
      }
    } catch (error) {
      if (error instanceof LoopEnd) error.written = text + error.written;
      throw error;
    }
    return toValue(text);
  }

  override evaluateBinaryExpression(node: Node, scope: Scope): Value {
    const operator = node.operator.value as string;
    if (operator === 'and' || operator === 'or') return super.evaluateBinaryExpression(node, scope);
    const left = this.evaluate(node.left, scope);
    const right = this.evaluate(node.right, scope);
    const isText = left.type === 'StringValue';
    if (operator === '==') return toValue(equal(left, right));
    if (operator === '!=') return toValue(!equal(left, right));
    if (operator === '~') return toValue(str(left) + str(right));
    if (operator === '%' && isText)
      return toValue(formatted(left.value as string, right.type === 'TupleValue' ? right.value : [right]));
    if (operator === '*' && isText && right.type === 'IntegerValue')
      return toValue(repeated(left.value as string, right.value as number));
    if (operator === '+' && isText !== (right.type === 'StringValue'))
      throw new Error(`${left.type} and ${right.type} cannot be added`);
    if (COMPARISONS.has(operator) && isText && right.type === 'StringValue') {
      const order = byCharacters(left.value as string, right.value as string);
      return toValue(
        operator[0] === '<'
          ? order < 0 || (order === 0 && operator === '<=')
          : order > 0 || (order === 0 && operator === '>='),
      );
    }
    if ((operator === 'in' || operator === 'not in') && Array.isArray(right.value))
      return toValue((right.value as Value[]).some((one) => equal(one, left)) === (operator === 'in'));
    if (operator === '%' && left.type === 'IntegerValue' && right.type === 'IntegerValue' && right.value !== 0)
      return toValue(((left.value % right.value) + right.value) % right.value);
    if ((operator === '/' || operator === '//' || operator === '%') && right.value === 0)
      throw new Error('division by zero');
    return super.evaluateBinaryExpression({ ...node, left: held(left), right: held(right) }, scope);
  }

  override evaluateMemberExpression(node: Node, scope: Scope): Value {
    const object = this.evaluate(node.object, scope);
    if (object.type === 'UndefinedValue') throw new Error(`${nameOf(node.object)} is undefined`);
    if (object.type === 'StringValue' && node.computed && node.property.type !== 'SliceExpression') {
      const index = this.evaluate(node.property, scope);
      if (index.type === 'IntegerValue') return toValue(Array.from(object.value as string).at(index.value as number));
      return super.evaluateMemberExpression({ ...node, object: held(object), property: held(index) }, scope);
    }
    return super.evaluateMemberExpression({ ...node, object: held(object) }, scope);
  }

  override evaluateCallExpression(node: Node, scope: Scope): Value {
    const { callee } = node;
    if (callee.type !== 'MemberExpression' || callee.computed) return super.evaluateCallExpression(node, scope);
    const object = this.evaluate(callee.object, scope);
    const name = callee.property.value as string;
    const method = object.type === 'StringValue' ? METHODS[name] : undefined;
    if (method !== undefined) {
      const [args, named] = this.evaluateArguments(node.args, scope);
      if (named.size > 0) throw new Error(`${name}() with named arguments is not supported`);
      return method(object.value as string, args);
    }
    return pairsAsTuples(
      super.evaluateCallExpression({ ...node, callee: { ...callee, object: held(object) } }, scope),
      object.type === 'ObjectValue' && name === 'items',
    );
  }

  override evaluateTestExpression(node: Node, scope: Scope): Value {
    const operand = this.evaluate(node.operand, scope);
    const name = node.test.value as string;
    if (name === 'iterable')
      return toValue(/^(?:Array|Tuple|String|Object|Undefined)Value$/.test(operand.type) !== node.negate);
    return super.evaluateTestExpression({ ...node, operand: held(operand) }, scope);
  }

  override applyFilter(operand: Value, node: Node, scope: Scope): Value {
    const call = node.type === 'CallExpression';
    const name = (call ? node.callee.value : node.value) as string;
    const filter = FILTERS[name];
    if (filter !== undefined) {
      const [args, named] = call ? this.evaluateArguments(node.args, scope) : [[], new Map<string, Value>()];
      const made = filter(operand, args, named);
      if (made !== undefined) return made;
    }
    return pairsAsTuples(
      super.applyFilter(name === 'tojson' ? forJson(operand) : operand, node, scope),
      name === 'items' || name === 'dictsort',
    );
  }

  #loop(node: Node, scope: Scope): Value {
    const select = node.iterable.type === 'SelectExpression' ? node.iterable : undefined;
    const test = select?.test as Node | undefined;
    const source = this.evaluate(select?.lhs ?? node.iterable, scope);
    const items: Value[] = [];
    for (const item of iterated(source)) {
      const inner = newScope(scope);
      this.#assign(node.loopvar, item, inner);
      if (test === undefined || isTrue(this.evaluate(test, inner))) items.push(item);
    }
    if (items.length === 0) return this.evaluateBlock(node.defaultBlock, newScope(scope));
    let text = '';
    for (const [i, item] of items.entries()) {
      const inner = newScope(scope);
      inner.setVariable('loop', loopVariable(items, i));
      this.#assign(node.loopvar, item, inner);
      try {
        text += this.evaluateBlock(node.body, inner).value as string;
      } catch (error) {
        if (!(error instanceof LoopEnd)) throw error;
        text += error.written;
        if (error.ends) break;
      }
    }
    return toValue(text);
  }

  #assign(target: Node, value: Value, scope: Scope): void {
    if (target.type === 'Identifier') {
      scope.setVariable(target.value as string, value);
      return;
    }
    const targets = target.value as Node[];
    const values = iterated(value);
    if (targets.length !== values.length) throw new Error(`${values.length} values for ${targets.length} names`);
    for (const [i, one] of targets.entries()) this.#assign(one, values[i] as Value, scope);
  }
}

function repeated(text: string, times: number): string {
  if (text.length * times > MAX_REPEATED) throw new Error(`a text of more than ${MAX_REPEATED} characters`);
  return text.repeat(Math.max(0, times));
}

function held(value: Value): Node {
  return { type: 'Held', value };
}

function nameOf(node: Node): string {
  if (node.type === 'Identifier') return String(node.value);
  return node.type === 'MemberExpression' ? `${nameOf(node.object)}.${nameOf(node.property)}` : 'a value';
}

function loopVariable(items: readonly Value[], i: number): Value {
  const loop = toValue({
    index: i + 1,
    index0: i,
    revindex: items.length - i,
    revindex0: items.length - i - 1,
    first: i === 0,
    last: i === items.length - 1,
    length: items.length,
  });
  const fields = loop.value as Map<string, Value>;
  fields.set('previtem', items[i - 1] ?? toValue(undefined));
  fields.set('nextitem', items[i + 1] ?? toValue(undefined));
  fields.set(
    'cycle',
    toCall((args) => args[i % args.length] ?? toValue(undefined)),
  );
  return loop;
}

/** The same with floats that JSON writes as Python does. */
function forJson(given: Value): Value {
  const { type, value } = given;
  if (type === 'FloatValue') {
    const { rawJSON } = JSON as unknown as { rawJSON(text: string): object };
    return Object.assign(Object.create(Object.getPrototypeOf(given) as object) as Value, given, {
      value: rawJSON(float(value as number)),
    });
  }
  if (type === 'UndefinedValue') throw new Error('an undefined value is not JSON');
  if (type === 'ArrayValue' || type === 'TupleValue') return toList((value as Value[]).map(forJson));
  if (type !== 'ObjectValue') return given;
  const copy = toValue({});
  for (const [key, one] of value as Map<string, Value>) copy.value.set(key, forJson(one));
  return copy;
}

function pairsAsTuples(value: Value, isPairs: boolean): Value {
  return isPairs && value.type === 'ArrayValue'
    ? toList((value.value as Value[]).map((pair) => toTuple(pair.value)))
    : value;
}

/** Order by code points. */
function byCharacters(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
