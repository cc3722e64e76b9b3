// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold code.
/** Tests that a completion inside a line leaves its brackets and quotes balanced. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shapeCompletion } from '../../../engine/tasks/completionText.ts';
import { leftOpen } from '../../../engine/tasks/nesting.ts';
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
    ['REFERENCES | (id)', 'orders (id)', 'orders'],
    ['REFERENCES | (id),', 'orders (id),', 'orders'],
    ['tags: |[];', 'string[]', 'string'],
    ['x = Objects.|(number);', 'assign(Number, this.number);', 'assign'],
    ['x = |(b);', 'f(a).g', 'f(a).g'],
    ['x = |[j];', 'rows[i]', 'rows[i]'],
    ['if (a) |(b);', 'f(")", a)', 'f'],
    ['x = | (b);', 'f(a)', 'f(a)'],
    ['finish<D extends Draft<|>>(', 'infer T> ? T : never {', 'infer T'],
    ['a = {| };', '...values, [values,', '...values'],
    ['a.push(`env: ${|}`);', 'JSON.stringify(b', 'JSON.stringify'],
    ['a = |;', 'foo(', 'foo'],
    ['f(|, b)', 'g(a', 'g'],
    ['f(|, b)', 'g(a)', 'g(a)'],
    ['x >> |;', 'f(2);', 'f(2)'],
    ['if (|) {}', 'a) {', 'a'],
    ['x = {|}', 'a: 1};', 'a: 1'],
    ['x = [|];', '1, 2];', '1, 2'],
    ['new Map<|>', 'string, X>();', 'string, X'],
    ['Array<|>', 'Array<string>>;', 'Array<string>'],
    ['f<|>', '(a: A) => B>', '(a: A) => B'],
    ['`${|}`', 'b}`;', 'b'],
    ['`a ${|} c`', 'b} c`;', 'b'],
    ['<a href="|">', '#">x</a>', '#'],
    ['<a |>', 'href="#">x</a>', 'href="#">x</a'],
    ["<a href='|'>", "#'>x</a>", '#'],
    ['<a href="|" class="b">', '#" class="c">', '#'],
    ['<input value="{{ | }}">', 'a.b }}">', 'a.b'],
    ['<p className={|}>', 'a.b}>x</p>', 'a.b'],
    ['<p :class="{ a: | }">', 'b }">', 'b'],
    ['<p on:click={() => |}>', 'f(a)}>x', 'f(a)'],
    ['style="color: |;"', 'red;"', 'red'],
    ['"""|"""', 'Doc string."""', 'Doc string.'],
    ["'''|'''", "Doc.'''\n", 'Doc.'],
    ['std::function<|> f;', 'void(std::vector<int>)>', 'void(std::vector<int>)'],
    ['puts "#{|}"', 'user["name"]}', 'user["name"]'],
    ['echo "$(|)"', 'cat "$f")', 'cat "$f"'],
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

describe('what closes nothing stays whole', () => {
  it.each([
    ['// the user| is set', "'s name", true],
    ["// it's (|)", 'not here', true],
    ["I don| do '", "'t", true],
    ['let x: &| = y;', "'static str", false],
    ['fn f(x: |) {', "&'a str", false],
    ["impl<'a> Foo<|> for Bar {", "'a", false],
    ['(setq x |)', "'foo", undefined],
    ['let f (x : |) = x', "'a list", undefined],
    ['const ok = x| > 3;', '.length > 2 && y', false],
    ['a.filter((x) => x| > 0)', '.n > 1 && x', false],
    ['cmd| > /dev/null', ' 2>&1 | grep x', false],
    ['div| > p {', ' > ul', undefined],
    ['const r = /|/;', '[a-z(]+', true],
    ["s.replace(/|/g, '')", '[^)"]', true],
    ['print(f"{|}")', 'd.get("k")', true],
    ["insert ('|');", "O''Brien", true],
    ['const s = "a|b";', '" + c + "', true],
    ['f("|")', 'a", "b', true],
    ['x = `a ${f(|)}`;', 'g("x")', false],
    ['s.split(|)', '/[(]/', false],
    ['s.match(|)', '/\\(/g', false],
    ['x = "|";', 'say \\"hi\\"', true],
    ['foo<A|>(x)', ', B<C>', false],
  ] as const)('%s, the model writes %s', (marked, raw, inText) => {
    expect(shown(marked, raw, inText)).toBe(raw);
  });
});

it('a string that began on an earlier line ends where it ends now', () => {
  expect(shown('  and |`;', 'more`;', true)).toBe('more');
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
/** Without templates in templates, which the code under test does not follow. */
const inner = balanced.filter((text) => !text.includes('`'));
const outer = balanced.filter((text) => text.split('`').length <= 3);
const written = fc
  .array(fc.constantFrom('a', '(', ')', ']', '}', "'", '"', '`', ', ', ' ', ';', '=>'), { maxLength: 6 })
  .map((parts) => parts.join(''));

it('where the editor has closed a bracket or quote, the line stays balanced, and shown text is not taken back', () => {
  let numShown = 0;
  fc.assert(
    fc.property(outer, fc.nat(), inner, fc.constantFrom('', 'x', 'x y', 'don, t'), written, (whole, n, ...texts) => {
      const ends = [...whole].flatMap((_, at) => {
        const closer = leftOpen(whole.slice(0, at)).at(-1);
        return closer !== undefined && whole.startsWith(closer, at) && whole[at - 1] !== '\\' ? [{ at, closer }] : [];
      });
      const end = ends[n % Math.max(1, ends.length)];
      if (!end) return;
      const isString = '"\'`'.includes(end.closer);
      const [code, text, more] = texts;
      const inside = isString ? text : code;
      // A string that begins again behind the quote is kept.
      const raw = inside + end.closer + (isString ? more.replaceAll(end.closer, '') : more);
      const context = line(whole.slice(0, end.at), whole.slice(end.at));
      let before = '';
      for (let length = 1; length <= raw.length; length++) {
        const { text: shown, stop } = shapeCompletion(context, raw.slice(0, length), false);
        expect(shown.startsWith(before)).toBe(true);
        before = shown;
        if (stop) break;
      }
      const { text: shown } = shapeCompletion(context, raw, true);
      expect(shown.startsWith(before)).toBe(true);
      expect(closing(context.before + shown + context.after), `${context.before}«${shown}»${context.after}`).toBe('');
      // An operator without an operand is not shown.
      const wanted = end.closer === ')' && !/,\s*$/.test(inside) ? inside.replace(/[\s=]+$/, '') : inside;
      expect(shown, `${context.before}«${raw}»${context.after}`).toBe(wanted.trim() === '' ? '' : wanted);
      if (shown) numShown++;
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
