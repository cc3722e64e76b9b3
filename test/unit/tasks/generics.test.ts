// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold code.
/** Type arguments and tags: no tag is closed where none can stand, and a line that can be read stays so. */
import { beforeAll, describe, expect, it } from 'vitest';
import { prepareComplete } from '../../../engine/tasks/completeTask.ts';
import type { Layout } from '../../../engine/text/prompt/layout.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { Syntax } from '../../../engine/text/syntax/syntax.ts';
import { Grammars } from '../../../engine/text/syntax/syntaxTrees.ts';
import { starterLayout } from '../../support/starter.ts';

const grammars = new Grammars();
const syntax = new Syntax(grammars);
let copying: Layout;
let plain: Layout;
beforeAll(async () => {
  copying = await starterLayout({ copies: true });
  plain = await starterLayout({ copies: false });
  const names = ['typescript', 'tsx', 'javascript', 'java', 'rust', 'cpp', 'c-sharp', 'python', 'ruby', 'php'];
  await Promise.all(names.map((name) => grammars.load(name)));
});

/** What is shown at `|` of what the model writes. */
function shown(path: string, marked: string, raw: string, layout = copying): string {
  const offset = marked.indexOf('|');
  const doc = new SourceDocument(path, path, marked.slice(0, offset) + marked.slice(offset + 1));
  return prepareComplete(layout, doc, { offset }, undefined, syntax).shape(raw, true).text;
}

const jsx = (inside: string) => `export const f = () => (\n  <p>\n    ${inside}\n  </p>\n);\n`;

describe('a tag is not closed among type arguments', () => {
  it.each([
    ['a.ts', "const A = styled('div')<|>`\n  color: red;\n`;\n"],
    ['a.tsx', "const A = styled('div')<|>`\n  color: red;\n`;\n"],
    ['a.tsx', "const A = styled('div')<|>();\n"],
    ['a.tsx', 'const f = () => {\n  const [a] = useState<|>(null);\n  return <p>x</p>;\n};\n'],
    ['a.tsx', jsx('{a.map<|>(x)}')],
    ['a.js', "const A = styled('div')<|>();\n"],
    ['a.ts', "const A = styled('div')<|\n"],
    ['a.ts', 'const f = <|>(x: T) => x;\n'],
    ['a.ts', 'const all = new Map<string, |>();\n'.replace('string, |', '|')],
    ['a.vue', "<script setup>\nconst A = styled('div')<|>();\n</script>\n"],
    ['a.svelte', "<script>\n  const A = styled('div')<|>();\n</script>\n"],
    ['a.astro', "---\nconst A = styled('div')<|>();\n---\n<p>a</p>\n"],
    ['A.java', 'class A {\n  void f() {\n    this.<|>run();\n  }\n}\n'],
    ['A.java', 'class A {\n  List<|> all;\n}\n'],
    ['a.rs', 'fn f() {\n    let all = rows.collect::<|>();\n}\n'],
    ['a.rs', 'impl<|> Set for Row {}\n'],
    ['a.cpp', 'template <|>\nclass A {};\n'],
    ['a.cpp', 'auto a = make()<|>(x);\n'],
    ['A.cs', 'class A {\n  List<|> all;\n}\n'],
  ])('%s %j', (path, marked) => {
    for (const layout of [copying, plain]) expect(shown(path, marked, '/styled', layout)).toBe('');
    expect(shown(path, marked, '/styled>', plain)).toBe('');
  });

  it.each([
    ['a.ts', "const A = styled('div')<|>`\n  color: red;\n`;\n", '{ $on: boolean }>`', '{ $on: boolean }'],
    ['a.tsx', "const A = styled('div')<|>`\n  color: red;\n`;\n", 'Props>`', 'Props'],
    ['a.ts', "const a = f('x')<|>();\n", 'Map<A, B>>()', 'Map<A, B>'],
    ['a.ts', 'const all = new Map<string, |>();\n', 'Set<A>>();', 'Set<A>'],
    ['A.java', 'class A {\n  void f() {\n    this.<|>run();\n  }\n}\n', 'String>run()', 'String'],
    ['A.java', 'class A {\n  Map<String, |> all;\n}\n', 'List<A>> all;', 'List<A>'],
    ['a.rs', 'fn f() {\n    let all = rows.collect::<|>();\n}\n', 'Vec<_>>();', 'Vec<_>'],
    ['a.cpp', 'template <|>\nclass A {};\n', 'typename T>', 'typename T'],
    ['A.cs', 'class A {\n  Dictionary<string, |> all;\n}\n', 'List<A>> all;', 'List<A>'],
    ['a.vue', '<script setup>\nconst p = defineProps<|>();\n</script>\n', '{ a: string }>();', '{ a: string }'],
  ])('type arguments are shown: %s %j', (path, marked, raw, text) => {
    expect(shown(path, marked, raw)).toBe(text);
  });
});

describe('a tag is closed where tags stand', () => {
  it.each([
    ['a.tsx', jsx('hello<|>'), '/p'],
    ['a.tsx', jsx('hello (there)<|>'), '/p'],
    ['a.tsx', jsx('{a.map(x)}<|>'), '/p'],
    ['a.tsx', jsx('<|>'), '/p'],
    ['a.tsx', jsx('<b>x<|>'), '/b'],
    ['a.jsx', jsx('hello<|>'), '/p'],
    ['a.vue', '<template>\n  <p>hello<|>\n</template>\n', '/p'],
    ['a.vue', '<script>\nlet a;\n<|>\n', '/script'],
    ['a.svelte', '<script>\n  let a;\n</script>\n<p>hello (x)<|>\n', '/p'],
    ['a.astro', '---\nlet a;\n---\n<p>hello<|>\n', '/p'],
    ['a.html', '<p>hello<|>\n', '/p'],
    ['A.java', 'class A {\n  /**\n   * The first (of two).<|>\n   */\n  void f() {}\n}\n', '/p'],
    ['A.cs', 'class A {\n  /// <summary>The text (here)<|>\n  void F() {}\n}\n', '/summary'],
    ['a.md', '<p>hello (x)<|>\n', '/p'],
  ])('%s %j', (path, marked, raw) => {
    expect(shown(path, marked, raw)).toBe(raw);
  });

  it('and a value that is cut off is left out', () => {
    const comment = 'class A {\n  /// <|>\n  void F() {}\n}\n';
    expect(shown('A.cs', comment, 'param name="')).toBe('param');
    expect(shown('A.cs', comment, 'param name="a"')).toBe('param name="a"');
  });
});

describe('a line without an error stays so', () => {
  it.each([
    ['a.py', "raise Fault('|'\n            % name)\n", ', \'.join("\'")', ''],
    ['a.tsx', 'const a = <A title={|} />;\n', 'balStyle: $', 'balStyle'],
    ['A.java', 'interface A {\n  String nameOf(|);\n}\n', 'f: string', ''],
    ['A.cs', 'class A {\n  static bool Try(|)\n  {\n  }\n}\n', 'culture: Category category', 'culture'],
    ['a.ts', 'const a = f(|);\n', 'b ? c', 'b'],
    ['a.ts', 'const a = f(|);\n', 'b.c as', 'b.c'],
    ['a.rs', 'fn f() {\n    g(|);\n}\n', 'x: u8', 'x'],
    ['a.rb', 'puts(|)\n', 'a if b do', 'a'],
    ['a.php', '<?php\nf(|);\n', '$a => $b', '$a'],
    ['a.ts', 'const a = `${|}=${b}`;\n', '${f(a)}', ''],
    ['a.ts', 'const a = /|/.test(b);\n', '/ image on web', ''],
    ['a.ts', 'const a = (b &&\n  /|/.test(b));\nf();\n', '/ image on web', ''],
    ['a.ts', 'const a = f<|>(b);\n', 'A B', 'A'],
    ['a.ts', 'const a = b >= 0 ? `|${b.c}>` : `${b.c}`;\n', 'raw` : `', 'raw'],
  ])('%s %j, the model writes %s', (path, marked, raw, text) => {
    expect(shown(path, marked, raw)).toBe(text);
  });

  it.each([
    ['a line that has one', 'a.ts', 'const a = f(|;\nconst b = 1;\n', 'b ? c'],
    ['the end of a line', 'a.ts', 'const a = |\n', 'b ? c'],
    ['what the grammar does not read', 'a.cpp', '#if HAS(|)\nint a;\n#endif\n', '<string>'],
    ['a template with type arguments', 'a.tsx', 'const A = styled.div<{|}>`\n`;\n', ' a: B; c: D '],
    ['a comment', 'a.ts', '// the first (|) of them\n', 'or: the last'],
    ['code without an error', 'a.ts', 'const a = f(|);\n', 'b ? c : d'],
  ])('%s may be completed', (_, path, marked, raw) => {
    expect(shown(path, marked, raw)).toBe(raw);
  });

  it('is not judged for a model that shows text as it comes', () => {
    expect(shown('a.ts', 'const a = f(|);\n', 'b ? c', plain)).toBe('b ? c');
  });
});

describe('marks that the rest of the line closes are not closed twice', () => {
  it.each([
    ['a.py', '"""Reads ``|``."""\n', 'text`` at once', 'text'],
    ['a.py', '"""Reads ``|``."""\n', '$ tmux``', '$ tmux'],
    ['a.md', 'The **|** part\n', 'first** part', 'first'],
    ['a.py', '"""Reads ``a`` |"""\n', 'and ``b``', 'and ``b``'],
    ['a.py', 'f(|**more)\n', 'a**2, ', 'a**2, '],
  ])('%s %j, the model writes %s', (path, marked, raw, text) => {
    expect(shown(path, marked, raw)).toBe(text);
  });
});
