/**
 * Rewrites a Jinja template into what the library parses: `raw`, `with` and tests with arguments. Refuses what it would read otherwise than
 * the reference. Does not run it.
 */
import { parse, tokenize } from '@huggingface/jinja';

/** The function that a `with` block calls with its body. */
export const WITH = 'with block';
/** Tests with an argument. Each is a filter whose name no template can write. */
export const ARGUMENT_TESTS = [
  'divisibleby',
  'eq',
  'equalto',
  'ne',
  'lt',
  'lessthan',
  'le',
  'gt',
  'greaterthan',
  'ge',
] as const;
export const testFilter = (test: string, negated: boolean): string => `is ${negated ? 'not ' : ''}${test}`;

type Program = ReturnType<typeof parse>;
type Token = ReturnType<typeof tokenize>[number];

const RAW = /\{#[\s\S]*?#\}|(^[ \t]*)?\{%([-+]?)\s*raw\s*(-?)%\}([\s\S]*?)\{%([-+]?)\s*endraw\s*([-+]?)%\}(\n?)/gm;

/** @throws Error with the reason if the template cannot be parsed */
export function parseTemplate(source: string): Program {
  const tokens = tokenize(source.replace(RAW, rawAsText), { lstrip_blocks: true, trim_blocks: true });
  refuseChains(tokens);
  return parse(testsAsFilters(withAsCall(tokens)));
}

/** The text of a raw block as an expression, with the white space that the reference leaves. */
function rawAsText(
  whole: string,
  indent = '',
  before = '',
  inside = '',
  body: string | undefined,
  beforeEnd = '',
  after = '',
  lineBreak = '',
): string {
  if (body === undefined) return whole;
  let text = inside === '-' ? body.trimStart() : body;
  if (beforeEnd === '-') text = text.trimEnd();
  else if (beforeEnd === '') text = text.replace(/(^|\n)[ \t]*$/, '$1');
  const spelled = Array.from(
    { length: text.length },
    (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`,
  );
  const kept = after === '' ? '' : lineBreak;
  return `${before === '+' ? indent : ''}{{${before === '-' ? '-' : ''} "${spelled.join('')}" ${after === '-' ? '-' : ''}}}${kept}`;
}

const ENDS_COMPARISON = new Set(['and', 'or', 'not', 'if', 'else', 'elif', 'in', 'is']);

/** The library reads `a < b < c` as `(a < b) < c`. Its tree does not tell them apart. */
function refuseChains(tokens: readonly Token[]): void {
  const open = [false];
  for (const { type, value } of tokens) {
    if (type === 'OpenParen' || type === 'OpenSquareBracket' || type === 'OpenCurlyBracket') open.push(false);
    else if (type === 'CloseParen' || type === 'CloseSquareBracket' || type === 'CloseCurlyBracket') open.pop();
    else if (type === 'ComparisonBinaryOperator') {
      if (open.at(-1)) throw new Error('a chain of comparisons is not supported');
      open[open.length - 1] = true;
    } else if (
      type === 'OpenStatement' ||
      type === 'OpenExpression' ||
      type === 'Comma' ||
      type === 'Colon' ||
      type === 'Equals' ||
      (type === 'Identifier' && ENDS_COMPARISON.has(value))
    )
      open[open.length - 1] = false;
  }
}

/** `{% with a = 1 %}` becomes `{% call(a = 1) with() %}`: its names are parameters with defaults. */
function withAsCall(tokens: readonly Token[]): Token[] {
  const TokenClass = tokens[0]?.constructor as (new (value: string, type: Token['type']) => Token) | undefined;
  if (TokenClass === undefined) return [...tokens];
  const made = (value: string, type: Token['type']): Token => new TokenClass(value, type);
  const out: Token[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] as Token;
    const starts = tokens[i - 1]?.type === 'OpenStatement' && token.type === 'Identifier';
    if (starts && token.value === 'endwith') out.push(made('endcall', 'Identifier'));
    else if (starts && token.value === 'with') {
      const end = tokens.findIndex(({ type }, at) => at > i && type === 'CloseStatement');
      const names = tokens.slice(i + 1, end);
      refuseReused(names);
      out.push(made('call', 'Identifier'));
      if (names.length > 0) out.push(made('(', 'OpenParen'), ...names, made(')', 'CloseParen'));
      out.push(made(WITH, 'Identifier'), made('(', 'OpenParen'), made(')', 'CloseParen'));
      i = end - 1;
    } else out.push(token);
  }
  return out;
}

/** `a is not eq(b)` becomes a filter of `a`. The library parses tests without arguments only. */
function testsAsFilters(tokens: readonly Token[]): Token[] {
  const TokenClass = tokens[0]?.constructor as (new (value: string, type: Token['type']) => Token) | undefined;
  if (TokenClass === undefined) return [...tokens];
  const out: Token[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const negated = tokens[i + 1]?.type === 'Identifier' && tokens[i + 1]?.value === 'not';
    const at = i + (negated ? 2 : 1);
    const [token, test] = [tokens[i] as Token, tokens[at]];
    const isTest =
      token.type === 'Identifier' &&
      token.value === 'is' &&
      test?.type === 'Identifier' &&
      tokens[at + 1]?.type === 'OpenParen' &&
      ARGUMENT_TESTS.some((name) => name === test.value);
    if (isTest) {
      out.push(new TokenClass('|', 'Pipe'), new TokenClass(testFilter(test.value, negated), 'Identifier'));
      i = at;
    } else out.push(token);
  }
  return out;
}

/** Values of a `with` do not see its names; those of parameters do. */
function refuseReused(names: readonly Token[]): void {
  const given = names.filter((token, i) => token.type === 'Identifier' && names[i + 1]?.type === 'Equals');
  for (const { value } of given)
    if (names.filter((token) => token.type === 'Identifier' && token.value === value).length > 1)
      throw new Error(`a with block that uses ${value} in its own values is not supported`);
}
