// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold code.
/** Tests that what stands behind the cursor stays balanced, whatever the model writes. */
import { describe, expect, it } from 'vitest';
import { balancedLength } from '../../../engine/tasks/balance.ts';
import { shapeCompletion } from '../../../engine/tasks/completionText.ts';

/** What is shown at `|` of what the model writes. */
function shown(marked: string, raw: string, inText: boolean | null = false): string {
  const [before, after] = marked.split('|') as [string, string];
  const line = { before, after, multiline: false, lineEnd: '\n' as const, nextLine: '', paragraph: false };
  return shapeCompletion({ ...line, ...(inText === null ? {} : { inText }) }, raw, true).text;
}

describe('the line stays balanced', () => {
  it.each([
    ['const {| } = useToaster(options);', ' toasts, offset);', ' toasts, offset'],
    ['const Panel: React.FC<|> = ({', '{', ''],
    ['const Panel: React.FC<|> = ({', 'PanelProps)', 'PanelProps'],
    ['onShow: Handler<|>;', 'Value, T")', 'Value, T'],
    ['reducer(state, {| });', 'type: ADD, toast);', 'type: ADD, toast'],
    ['const x = [|];', 'a, f(b));', 'a, f(b)'],
    ['const x = [|];', 'a, { b', 'a'],
    ['log(|);', "'a' + event => { x", "'a' + event =>"],
    ['function run(|) {', 'thing: ', 'thing'],
    ['point = (|)', 'a, ', 'a, '],
    ['r.HandleFunc("/", func(|) {', 'rw http.ResponseWriter)', 'rw http.ResponseWriter'],
    ['onMove: (|) => void;', 'to: Position;', 'to: Position'],
    ['for (|) {', 'let i = 0; i < n; i++', 'let i = 0; i < n; i++'],
    ['let a: [u8; |];', 'N', 'N'],
    ['const all: Array<|> = [];', 'Map<string, number', 'Map'],
    ['List<|> all;', 'Map<A, B>,', 'Map<A, B>'],
    ['#include <|>', 'sys/stat.h> /* stat() */', 'sys/stat.h'],
    ['<script src="a.js"><|>', '/script>--', '/script'],
    ['  <|>', 'label>Key</label', 'label>Key</label'],
    ['  <|>', 'label>Key</label> and <', 'label>Key</label'],
    ['<p className={|}>', "open ? 'a' : '')", "open ? 'a' : ''"],
    ['parts.push(`env: ${|}`);', 'option.name);', 'option.name'],
    ['parts.push(`|`);', 'env: ${option.name}${', 'env: ${option.name}'],
    ["  | 'top'", "'left' ['a'", "'left'"],
    ["const kind = '|';", "a')');", 'a'],
    ['f(|)', 'a // the second part', 'a'],
    ['f(|)', 'a // b', 'a // b'],
    ['return {| };', 'short, long"', 'short, long'],
    ['let x: HashMap<|> = y;', "&'a str, Vec<u8>", "&'a str, Vec<u8>"],
    ["impl<'a> Foo<|> {", "'a, 'b", "'a, 'b"],
    ['s.match(|);', '/[)"]/g, x', '/[)"]/g, x'],
    ['if (|) {', "x === '('", "x === '('"],
    ['foo(bar(|, x);', 'a)', 'a)'],
    ["x.replace(/'/g, |);", '"a"', '"a"'],
    ['return "|" + name', '""', ''],
    ['return "|" + name', '" + title + "', '" + title + "'],
    ["const a = ['|'];", "''b", ''],
  ])('%s, the model writes %s', (marked, raw, text) => {
    expect(shown(marked, raw)).toBe(text);
  });

  it.each([
    ['print(f"{|}")', 'x)', 'x'],
    ['print(f"{|} of {n}")', 'x["a"]', 'x["a"]'],
    ['puts "#{|}"', 'x)', 'x'],
    ['OK = 201, "|"', 'CREATED = 202, "Accepted"', 'CREATED = 202, '],
    ['text += `a |, ${b}', 'c`; d', 'c'],
    ['log(`a |)', 'c`', 'c`'],
    ['  background: url(|);', 'data:image/png;base64,AA==', 'data:image/png;base64,AA=='],
    ['  transform: scale(|);', '0);', '0'],
    ['println!("{|}", x);', 'y)', 'y'],
    ['  """|"""', 'Returns it."', 'Returns it.'],
    ['// the first (see |) of', 'it', 'it'],
  ])('in a text: %s, the model writes %s', (marked, raw, text) => {
    expect(shown(marked, raw, true)).toBe(text);
  });

  it.each([
    ['s.replace(/^(?:a|b|', ")$/, 'x')", "[^'\\\\])+|\\[([^[\\]]*?)\\]/g", "[^'\\\\])+|\\[([^[\\]]*?"],
    ['s.match(/(', ')/)', 'a)/g', 'a'],
    ['s.match(/(', ')/)', 'a|b', 'a|b'],
    ['s.match(/a', '/g)', '[/]b/g', '[/]b'],
    ['s.match(/[', ']/g)', 'a-z', 'a-z'],
    ['s.match(/a', '/g)', '+(b', '+'],
    ['s.match(/a', '/g)', 'b\\', 'b'],
    // It is no pattern that can be read.
    ['s.match(/a', ')/', '(b', '(b'],
  ])('in a pattern: %s and %s, the model writes %s', (before, after, raw, text) => {
    expect(raw.slice(0, balancedLength(before, raw, after, { isKnown: true }))).toBe(text);
  });

  it.each([
    ['{"files": [|]}', "The panel's hint)", "The panel's hint"],
    ['branches: [|]', '"main", \'rel', '"main"'],
    ['(foo x |)', "'bar", "'bar"],
  ])('without a tree: %s, the model writes %s', (marked, raw, text) => {
    expect(shown(marked, raw, null)).toBe(text);
  });

  it('any text of signs leaves every line as it was', () => {
    const signs = ['a', ' ', '(', ')', '[', ']', '{', '}', '"', '`', ',', '${'];
    for (const [before, after] of [
      ['f(', ')'],
      ['x = "', '";'],
      ['a[`${', '}`]'],
      ['<b c={', '}>'],
      ['{ a: [', '] }'],
    ])
      for (let seed = 1; seed < 4000; seed++) {
        let text = '';
        for (let rest = seed * 7919; rest > 0; rest = Math.floor(rest / signs.length))
          text += signs[rest % signs.length];
        const length = balancedLength(before as string, text, after as string, { isKnown: true });
        const [was, now] = [read(`${before}${after}`), read(`${before}${text.slice(0, length)}${after}`)];
        expect(now, `${before}|${after} with ${text}`).toBe(was);
      }
  });
});

/** What a line leaves open, by a plain reader of its own. */
function read(line: string): string {
  const open: string[] = [];
  for (let i = 0; i < line.length; i++) {
    const top = open.at(-1) ?? '';
    const sign = line[i] as string;
    if ('"`'.includes(top) && top !== '') {
      if (sign === top) open.pop();
      else if (line.startsWith('${', i)) {
        open.push('}');
        i++;
      }
    } else if ('"`'.includes(sign)) open.push(sign);
    else if ('([{'.includes(sign)) open.push({ '(': ')', '[': ']', '{': '}' }[sign] as string);
    else if (')]}'.includes(sign) && open.pop() !== sign) return `unopened ${sign}`;
  }
  return open.join('');
}
