/** Values of a template as Python writes them. Does not evaluate anything (see jinjaRuntime.ts). */

/** A value of the library, told by its `type`. */
export interface Value {
  type: string;
  // Strings, numbers, lists and maps by type.
  // biome-ignore lint/suspicious/noExplicitAny: the library does not export its types
  value: any;
}

/** `str(value)` */
export function str(value: Value): string {
  switch (value.type) {
    case 'StringValue':
      return value.value as string;
    case 'UndefinedValue':
      return '';
    default:
      return repr(value);
  }
}

/** `repr(value)` */
function repr({ type, value }: Value): string {
  switch (type) {
    case 'NullValue':
      return 'None';
    case 'BooleanValue':
      return value ? 'True' : 'False';
    case 'IntegerValue':
      return String(value);
    case 'FloatValue':
      return float(value as number);
    case 'StringValue':
      return quoted(value as string);
    case 'UndefinedValue':
      return 'Undefined';
    case 'ArrayValue':
      return `[${(value as Value[]).map(repr).join(', ')}]`;
    case 'TupleValue':
      return `(${(value as Value[]).map(repr).join(', ')}${value.length === 1 ? ',' : ''})`;
    case 'ObjectValue':
      return `{${[...(value as Map<string, Value>)].map(([key, one]) => `${quoted(key)}: ${repr(one)}`).join(', ')}}`;
    default:
      throw new Error(`a value of the type ${type} cannot be written`);
  }
}

/** `repr` of a float. */
export function float(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value < 0 ? '-inf' : 'inf';
  if (Object.is(value, -0)) return '-0.0';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
  return Number.isInteger(value) ? value.toFixed(1) : String(value);
}

const ESCAPES: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replace(/[\\\n\r\t']|[\p{C}\p{Z}]/gu, (found) => {
    if (found === ' ' || (found === "'" && quote === '"')) return found;
    if (found === "'") return "\\'";
    const code = found.codePointAt(0) as number;
    const hex = code.toString(16);
    return (
      ESCAPES[found] ??
      (code < 0x100
        ? `\\x${hex.padStart(2, '0')}`
        : code < 0x10000
          ? `\\u${hex.padStart(4, '0')}`
          : `\\U${hex.padStart(8, '0')}`)
    );
  });
  return quote + escaped + quote;
}

/** `text % values` */
export function formatted(text: string, values: readonly Value[]): string {
  let next = 0;
  const out = text.replace(/%(.?)/gsu, (whole, kind: string) => {
    if (kind === '%') return '%';
    const value = values[next++];
    if (value === undefined) throw new Error('not enough arguments for format string');
    if (kind === 's') return str(value);
    if (kind === 'd' && (value.type === 'IntegerValue' || value.type === 'FloatValue'))
      return String(Math.trunc(value.value as number));
    throw new Error(`the format ${whole} is not supported`);
  });
  if (next < values.length) throw new Error('not all arguments converted during string formatting');
  return out;
}

/** `a == b` */
export function equal(a: Value, b: Value): boolean {
  const isNumber = ({ type }: Value): boolean => /^(?:Integer|Float|Boolean)Value$/.test(type);
  if (isNumber(a) && isNumber(b)) return Number(a.value) === Number(b.value);
  if (a.type !== b.type) return false;
  if (a.type === 'ArrayValue' || a.type === 'TupleValue')
    return a.value.length === b.value.length && (a.value as Value[]).every((one, i) => equal(one, b.value[i]));
  if (a.type === 'ObjectValue')
    return (
      a.value.size === b.value.size &&
      [...(a.value as Map<string, Value>)].every(([key, one]) => b.value.has(key) && equal(one, b.value.get(key)))
    );
  return a.value === b.value;
}

const SPACES = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

/** `text.strip(characters)`; `sides`: which ones. White space without `characters`. */
export function stripped(text: string, characters?: string, sides = 'both'): string {
  const isStripped = (character: string): boolean =>
    characters === undefined ? new RegExp(`^[${SPACES}]$`).test(character) : characters.includes(character);
  const all = Array.from(text);
  let start = 0;
  let end = all.length;
  if (sides !== 'right') while (start < end && isStripped(all[start] as string)) start++;
  if (sides !== 'left') while (end > start && isStripped(all[end - 1] as string)) end--;
  return all.slice(start, end).join('');
}
