// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold code.
/** Tests that a completion inside a line leaves its brackets and quotes balanced. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shapeCompletion } from '../../../engine/tasks/completionText.ts';
import { part } from '../../support/testLength.ts';

const line = (before: string, after: string, inText?: boolean) => ({
  before,
  after,
  multiline: false,
  lineEnd: '\n' as const,
  nextLine: '',
  paragraph: false,
  ...(inText === undefined ? {} : { inText }),
});
/** What is shown at `|` of what the model writes. */
function shown(marked: string, raw: string, inText?: boolean): string {
  const [before, after] = marked.split('|') as [string, string];
  return shapeCompletion(line(before, after, inText), raw, true).text;
}

describe('the rest of the line is not closed twice', () => {
  const quoted = ['"', "'", '`'].flatMap((q) => [
    [`x = ${q}|${q}`, `hello${q};`, 'hello'],
    [`f(${q}|${q})`, `hello${q});`, 'hello'],
    [`f(${q}|${q})`, `hello${q}, 2);`, 'hello'],
    [`a[${q}|${q}]`, `key${q}] = 1;`, 'key'],
    [`if (x === ${q}|${q}) {`, `a${q}) {`, 'a'],
    [`f({a: ${q}|${q}})`, `v${q}});`, 'v'],
    [`{ a: ${q}|${q}, b }`, `v${q}, c };`, 'v'],
    [`x = ${q}ab|cd${q};`, `x${q};`, 'x'],
    [`x = ${q}it|${q};`, `\\${q}s${q};`, `\\${q}s`],
    [`assert x == ${q}|${q}`, `a${q}, "msg"`, 'a'],
  ]);
  it.each([
    ...quoted,
    ['f(|)', 'a);', 'a'],
    ['if (|) {}', 'a) {', 'a'],
    ['x = {|}', 'a: 1};', 'a: 1'],
    ['x = [|];', '1, 2];', '1, 2'],
    ['new Map<|>', 'string, X>();', 'string, X'],
    ['Array<|>', 'Array<string>>;', 'Array<string>'],
    ['f<|>', '(a: A) => B>', '(a: A) => B'],
    ['`${|}`', 'b}`;', 'b'],
    ['`a ${|} c`', 'b} c`;', 'b'],
    ['<a href="|">', '#">x</a>', '#'],
    ['<a |>', 'href="#">x</a>', 'href="#"'],
    ['"""|"""', 'Doc string."""', 'Doc string.'],
    ["'''|'''", "Doc.'''\n", 'Doc.'],
  ])('%s, the model writes %s', (marked, raw, text) => {
    expect(shown(marked, raw)).toBe(text);
  });
});

describe('the completion may close', () => {
  it.each([
    ['f("|)', 'a")', 'a"'],
    ['x = "|;', 'a";', 'a"'],
    ['f(g(|)', 'a));', 'a)'],
    ['f(a, |', 'b);', 'b);'],
    ['x = `a ${b|;', '}`;', '}`'],
  ])('%s, the model writes %s', (marked, raw, text) => {
    expect(shown(marked, raw)).toBe(text);
  });
});

describe('an apostrophe is no quote', () => {
  it.each([
    ["// it's (|)", 'not here)', 'not here', true],
    ["fn f<'a>(x: |) {", "&'a str, y: &'a str) {", "&'a str, y: &'a str", false],
    ["let x: Foo<'a>= f(|)", 'g(1))', 'g(1)', false],
  ])('%s, the model writes %s', (marked, raw, text, inText) => {
    expect(shown(marked, raw, inText)).toBe(text);
  });
});

it('a string that began on an earlier line ends where it ends now', () => {
  expect(shown('  and |`;', 'more`;', true)).toBe('more');
  expect(shown('  and |";', 'more";', true)).toBe('more');
  expect(shown("f(|')", "'x'", false)).toBe("'x'");
});

/** A line whose brackets and quotes are balanced. */
const { balanced } = fc.letrec<{ balanced: string; piece: string }>((tie) => ({
  balanced: fc.array(tie('piece'), { maxLength: 4 }).map((pieces) => pieces.join('')),
  piece: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('a', 'b, ', ' = ', ';', '.c', ' '),
    fc
      .constantFrom('"', "'", '`')
      .chain((q) =>
        fc
          .array(fc.constantFrom('x', ' (', ']', `\\${q}`, ', '), { maxLength: 3 })
          .map((text) => ` ${q}${text.join('')}${q}`),
      ),
    fc.constantFrom('()', '[]', '{}').chain((pair) => tie('balanced').map((inner) => pair[0] + inner + pair[1])),
    tie('balanced').map((inner) => ` \`a\${${inner}}\``),
  ),
}));
const written = fc
  .array(fc.constantFrom('a', '(', ')', '[', ']', '{', '}', '"', '`', '${', ', ', ' ', ';', '\\', '"""', '=>'), {
    maxLength: 12,
  })
  .map((parts) => parts.join(''));

it('a line that was balanced stays balanced, and shown text is not taken back', () => {
  let numShown = 0;
  fc.assert(
    fc.property(balanced, fc.nat(), written, (whole, n, raw) => {
      const at = n % (whole.length + 1);
      if (whole[at - 1] === '\\' || whole.slice(at - 1, at + 1) === '${') return;
      const context = line(whole.slice(0, at), whole.slice(at));
      let before = '';
      for (let end = 1; end <= raw.length; end++) {
        const { text, stop } = shapeCompletion(context, raw.slice(0, end), false);
        expect(text.startsWith(before)).toBe(true);
        before = text;
        if (stop) break;
      }
      const { text } = shapeCompletion(context, raw, true);
      expect(text.startsWith(before)).toBe(true);
      // Outside all brackets of the line the completion may close those of earlier lines.
      if (context.after.trim() === '' || closing(context.before) === '') return;
      if (text) numShown++;
      expect(closing(whole), whole).toBe('');
      expect(closing(context.before + text + context.after), `${context.before}«${text}»${context.after}`).toBe('');
    }),
    { numRuns: part(4000), seed: 32 },
  );
  expect(numShown).toBeGreaterThan(part(500));
});

/** What would have to be typed to close a text: a recursive descent, unlike the code under test. */
function closing(text: string): string {
  let at = 0;
  const code = (end: string): string => {
    while (at < text.length) {
      const c = text[at++] as string;
      if (c === end) return '';
      if ('([{'.includes(c)) {
        const missing = code(')]}'['([{'.indexOf(c)] as string);
        if (missing !== '') return missing + end;
      } else if (')]}'.includes(c)) return `unopened ${c}`;
      else if ('"\'`'.includes(c)) {
        const missing = string(c);
        if (missing !== '') return missing + end;
      }
    }
    return end;
  };
  const string = (quote: string): string => {
    while (at < text.length) {
      const c = text[at++] as string;
      if (c === '\\') at++;
      else if (c === quote) return '';
      else if (quote === '`' && c === '$' && text[at] === '{') {
        at++;
        const missing = code('}');
        if (missing !== '') return missing + quote;
      }
    }
    return quote;
  };
  return code('');
}
