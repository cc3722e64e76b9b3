/**
 * Filters of Jinja and methods of Python's strings that the library lacks, or has with other results. Anything else is
 * left to the library, or is an error there.
 */
import { ARGUMENT_TESTS, testFilter } from './jinjaSource.ts';
import { isTrue, iterated, toList, toTuple, toValue } from './jinjaValues.ts';
import { equal, formatted, str, stripped, type Value } from './pythonText.ts';

type Named = ReadonlyMap<string, Value>;

/** Undefined: the library does it. */
type Filter = (operand: Value, args: readonly Value[], named: Named) => Value | undefined;
type Method = (text: string, args: readonly Value[]) => Value;

/** Of Python's splitlines. */
const BREAKS = '\\n-\\r\\x1c-\\x1e\\x85\\u2028\\u2029';
const LINE_BREAK = new RegExp(`\\r\\n|[${BREAKS}]`);
/** Longest row of the filter batch, because a template is untrusted. */
const MAX_ROW = 10_000;
const isText = ({ type }: Value): boolean => type === 'StringValue';
const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1).toLowerCase();
const size = (text: string): number => Array.from(text).length;

type Test = (operand: Value, argument: Value) => boolean;
const less: Test = (a, b) => orderOf(a, b) < 0;
const TESTS: Readonly<Record<(typeof ARGUMENT_TESTS)[number], Test>> = {
  divisibleby: (a, b) => {
    if (numberOf(b) === 0) throw new Error('division by zero');
    return numberOf(a) % numberOf(b) === 0;
  },
  eq: equal,
  equalto: equal,
  ne: (a, b) => !equal(a, b),
  lt: less,
  lessthan: less,
  le: (a, b) => orderOf(a, b) <= 0,
  gt: (a, b) => less(b, a),
  greaterthan: (a, b) => less(b, a),
  ge: (a, b) => orderOf(a, b) >= 0,
};

/** A test with an argument, as a filter. */
const asFilter =
  (test: Test, negated: boolean): Filter =>
  (operand, args, named) => {
    const [given, ...more] = args;
    if (given === undefined || more.length > 0 || named.size > 0) throw new Error('a test needs one argument');
    return toValue(test(operand, given) !== negated);
  };

export const FILTERS: Readonly<Record<string, Filter>> = {
  ...Object.fromEntries(
    ARGUMENT_TESTS.flatMap((name) =>
      [false, true].map((negated) => [testFilter(name, negated), asFilter(TESTS[name], negated)]),
    ),
  ),
  string: (operand) => toValue(str(operand)),
  length: (operand) => toValue(operand.type === 'ObjectValue' ? operand.value.size : iterated(operand).length),
  count: (operand, args, named) => FILTERS.length!(operand, args, named),
  list: (operand) => toList(iterated(operand)),
  first: (operand) => iterated(operand)[0] ?? toValue(undefined),
  last: (operand) => iterated(operand).at(-1) ?? toValue(undefined),
  trim: (operand, args) => toValue(stripped(str(operand), textOrNone(args[0]))),
  upper: (operand) => toValue(str(operand).toUpperCase()),
  lower: (operand) => toValue(str(operand).toLowerCase()),
  capitalize: (operand) => toValue(capitalized(str(operand))),
  title: (operand) => toValue(str(operand).replace(/[^-\s({[<]+/gu, capitalized)),
  format: (operand, args) => toValue(formatted(str(operand), args)),
  e: (operand) => toValue(escaped(str(operand))),
  escape: (operand) => toValue(escaped(str(operand))),
  wordcount: (operand) => toValue(str(operand).match(/[\p{L}\p{M}\p{N}_]+/gu)?.length ?? 0),
  join: (operand, args, named) => {
    if (named.has('attribute') || args.length > 1) throw new Error('join with an attribute is not supported');
    return toValue(
      iterated(operand)
        .map(str)
        .join(str(args[0] ?? named.get('d') ?? toValue(''))),
    );
  },
  default: (operand, args, named) => {
    const asked = args[1] ?? named.get('boolean');
    const missing = operand.type === 'UndefinedValue' || (asked !== undefined && isTrue(asked) && !isTrue(operand));
    return missing ? (args[0] ?? named.get('default_value') ?? toValue('')) : operand;
  },
  batch: (operand, args) => {
    const count = numberOf(args[0]);
    if (!(count >= 1 && count <= MAX_ROW)) throw new Error(`batch(${count}) is not supported`);
    const rows: Value[][] = [];
    for (const [i, item] of iterated(operand).entries()) {
      if (i % count === 0) rows.push([]);
      rows.at(-1)?.push(item);
    }
    const last = rows.at(-1);
    if (args[1] !== undefined) while (last && last.length < count) last.push(args[1]);
    return toList(rows.map(toList));
  },
  sum: (operand, args, named) => {
    if (args.length > 0 || named.size > 0) throw new Error('sum with arguments is not supported');
    const numbers = iterated(operand);
    if (!numbers.every(({ type }) => type === 'IntegerValue'))
      throw new Error('sum of other than integers is not supported');
    return toValue(numbers.reduce((sum, { value }) => sum + value, 0));
  },
  max: (operand, args, named) => extreme(operand, args, named, 1),
  min: (operand, args, named) => extreme(operand, args, named, -1),
  int: (operand, args, named) => {
    if (!isText(operand)) return toValue(Math.trunc(numberOf(operand)));
    const text = stripped(operand.value as string);
    return /^[+-]?\d+(?:\.\d*)?$/.test(text)
      ? toValue(Math.trunc(Number(text)))
      : (args[0] ?? named.get('default') ?? toValue(0));
  },
};

export const METHODS: Readonly<Record<string, Method>> = {
  strip: (text, args) => toValue(stripped(text, textOrNone(args[0]))),
  lstrip: (text, args) => toValue(stripped(text, textOrNone(args[0]), 'left')),
  rstrip: (text, args) => toValue(stripped(text, textOrNone(args[0]), 'right')),
  capitalize: (text) => toValue(capitalized(text)),
  title: (text) => toValue(text.replace(/\p{L}+/gu, capitalized)),
  isdigit: (text) => toValue(/^\p{Nd}+$/u.test(text)),
  isalpha: (text) => toValue(/^\p{L}+$/u.test(text)),
  isalnum: (text) => toValue(/^[\p{L}\p{Nd}]+$/u.test(text)),
  isspace: (text) => toValue(text !== '' && stripped(text) === ''),
  isupper: (text) => toValue(text === text.toUpperCase() && text !== text.toLowerCase()),
  islower: (text) => toValue(text === text.toLowerCase() && text !== text.toUpperCase()),
  removeprefix: (text, args) => toValue(text.startsWith(textOf(args)) ? text.slice(textOf(args).length) : text),
  removesuffix: (text, args) =>
    toValue(text.endsWith(textOf(args)) ? text.slice(0, text.length - textOf(args).length) : text),
  count: (text, args) => toValue(textOf(args) === '' ? size(text) + 1 : text.split(textOf(args)).length - 1),
  find: (text, args) => toValue(placeOf(text, text.indexOf(textOf(args)))),
  rfind: (text, args) => toValue(placeOf(text, text.lastIndexOf(textOf(args)))),
  join: (text, args) => {
    const items = iterated(args[0] as Value);
    if (!items.every(isText)) throw new Error('join() takes strings only');
    return toValue(items.map(({ value }) => value).join(text));
  },
  partition: (text, args) => partition(text, textOf(args), text.indexOf(textOf(args)), true),
  rpartition: (text, args) => partition(text, textOf(args), text.lastIndexOf(textOf(args)), false),
  splitlines: (text, args) => {
    if (args.length > 0) throw new Error('splitlines() with arguments is not supported');
    const lines = text.split(LINE_BREAK);
    if (lines.at(-1) === '') lines.pop();
    return toValue(lines);
  },
  rsplit: (text, args) => {
    if (args[0] === undefined || !isText(args[0])) throw new Error('rsplit() without a separator is not supported');
    const parts = text.split(textOf(args));
    const most = args[1] === undefined ? -1 : numberOf(args[1]);
    if (most < 0 || parts.length <= most + 1) return toValue(parts);
    return toValue([parts.slice(0, parts.length - most).join(textOf(args)), ...parts.slice(parts.length - most)]);
  },
};

function partition(text: string, separator: string, at: number, first: boolean): Value {
  if (separator === '') throw new Error('empty separator');
  const parts =
    at >= 0
      ? [text.slice(0, at), separator, text.slice(at + separator.length)]
      : first
        ? [text, '', '']
        : ['', '', text];
  return toTuple(parts.map(toValue));
}

/** The largest (1) or smallest (-1) number. */
function extreme(operand: Value, args: readonly Value[], named: Named, sign: number): Value {
  const items = iterated(operand);
  if (args.length > 0 || named.size > 0 || !items.every(({ type }) => type === 'IntegerValue' || type === 'FloatValue'))
    throw new Error('max and min take lists of numbers only');
  return (
    items.reduce<Value | undefined>(
      (best, item) => (best && (item.value - best.value) * sign <= 0 ? best : item),
      undefined,
    ) ?? toValue(undefined)
  );
}

/** In code points. -1 stays. */
function placeOf(text: string, at: number): number {
  return at < 0 ? at : size(text.slice(0, at));
}

function textOf(args: readonly Value[]): string {
  const [given, ...more] = args;
  if (given === undefined || !isText(given) || more.some(({ type }) => type !== 'IntegerValue'))
    throw new Error('a method of a string got arguments that are not supported');
  return given.value as string;
}

function textOrNone(given: Value | undefined): string | undefined {
  if (given === undefined || given.type === 'NullValue') return undefined;
  if (!isText(given)) throw new Error(`characters to strip are ${given.type}`);
  return given.value as string;
}

/** Of two numbers or two texts, as Python orders them. */
function orderOf(a: Value, b: Value): number {
  if (isText(a) && isText(b)) return Buffer.compare(Buffer.from(a.value), Buffer.from(b.value));
  return numberOf(a) - numberOf(b);
}

function numberOf(given: Value | undefined): number {
  if (given === undefined || !/^(?:Integer|Float|Boolean)Value$/.test(given.type))
    throw new Error(`${given?.type ?? 'nothing'} is given instead of a number`);
  return Number(given.value);
}

function escaped(text: string): string {
  const names: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', "'": '&#39;', '"': '&#34;' };
  return text.replace(/[&<>'"]/g, (character) => names[character] as string);
}
