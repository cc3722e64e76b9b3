/** Values of the Jinja library, whose classes it does not export. Does not evaluate anything. */
import { Environment, Interpreter } from '@huggingface/jinja';
import type { Value } from './pythonText.ts';

export interface Scope {
  set(name: string, value: unknown): Value;
  setVariable(name: string, value: Value): Value;
  lookupVariable(name: string): Value;
}

export type Call = (args: Value[], scope: Scope) => Value;

export const newScope = (parent?: Scope): Scope =>
  new Environment(parent as unknown as Environment) as unknown as Scope;

/** A value of the library from a plain one. */
export const toValue = (value: unknown): Value => newScope().set('value', value);

type ValueClass = new (value: unknown) => Value;
const List = toValue([]).constructor as ValueClass;
const Callable = toValue(() => null).constructor as ValueClass;
const interpreter = new Interpreter(new Environment()) as unknown as { evaluate(node: object, scope: Scope): Value };
const Tuple = interpreter.evaluate({ type: 'TupleLiteral', value: [] }, newScope()).constructor as ValueClass;

export const toList = (values: readonly Value[]): Value => new List(values);
export const toTuple = (values: readonly Value[]): Value => new Tuple(values);
export const toCall = (call: Call): Value => new Callable(call);

/** What a loop sees: an undefined value is empty. */
export function iterated({ type, value }: Value): Value[] {
  if (type === 'ArrayValue' || type === 'TupleValue') return value as Value[];
  if (type === 'StringValue') return Array.from(value as string, toValue);
  if (type === 'ObjectValue') return [...(value as Map<string, Value>).keys()].map(toValue);
  if (type === 'UndefinedValue') return [];
  throw new Error(`${type} is not iterable`);
}

export function isTrue(value: Value): boolean {
  return (value as unknown as { __bool__(): { value: boolean } }).__bool__().value;
}
