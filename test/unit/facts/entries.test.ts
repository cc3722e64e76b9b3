/** What SQL, YAML, JSON, TOML and Markdown files define, and what only looks like it. */
import { describe, expect, it, test } from 'vitest';
import { entriesOf } from '../../../engine/facts/extract/entries.ts';
import { ask, known } from './askFacts.ts';

const namesOf = (path: string, text: string) =>
  entriesOf({ path, lf: text })?.map(({ kind, name, line, depth }) => `${kind} ${name} ${line} ${depth}`);

it.each([
  ['CREATE TABLE a (\n  b int\n);\ncreate table if not exists "my table" (x);', ['table a 1 0', 'table my table 4 0']],
  ['create or replace view s.v as select 1;\nCREATE MATERIALIZED VIEW m AS SELECT 1;', ['view s.v 1 0', 'view m 2 0']],
  ['CREATE UNIQUE INDEX CONCURRENTLY i ON a (b);\nCREATE INDEX ON a (c);', ['index i 1 0']],
  ['create temp table\n  t (a int);\nCREATE PROCEDURE p() AS $$ $$;', ['table t 1 0', 'function p 3 0']],
  ["-- create table no (a)\n/* create table\n no2 */\ninsert into a values ('\ncreate table no3 (x)\n');", []],
  [
    'create function f() as $$ create table no (a); $$;\ndo $$ create table t (a int); $$;',
    ['function f 1 0', 'table t 2 0'],
  ],
  [
    'create function f() as $b$\n create temp table no (a);\n$b$;\ncreate table t (a int);',
    ['function f 1 0', 'table t 4 0'],
  ],
  ['create trigger g before insert on a; create type mood as enum ();', ['trigger g 1 0']],
  ['CREATE TABLE `db`.`t` (a int);\nCREATE TABLE [dbo].[u] (a int);', ['table db.t 1 0', 'table dbo.u 2 0']],
  ['ALTER TABLE a ADD b int;\nrecreate table x;', []],
])('SQL: %j', (text, names) => expect(namesOf('a.sql', text)).toEqual(names));

it.each([
  ['a: 1\nb:\n  c: 2\n  "d e": 3\nf:', ['key a 1 0', 'key b 2 0', 'key c 3 1', 'key d e 4 1', 'key f 5 0']],
  ['run: |\n  start: now\n\n  more: x\nnext: 1', ['key run 1 0', 'key next 5 0']],
  ['- name: a\n  uses: b\n- name: c', ['key name 1 0', 'key uses 2 0', 'key name 3 0']],
  ['# x: 1\nurl: http://a.b/c\n? odd\n: value\nt: 12:30', ['key url 2 0', 'key t 5 0']],
  ['a: {b: 1, c: 2}\n&x d: 1\n"e": >-\n  f: g', ['key a 1 0', 'key e 3 0']],
  ['a: 1\n---\nb: 2', ['key a 1 0', 'key b 3 0']],
])('YAML: %j', (text, names) => expect(namesOf('a.yml', text)).toEqual(names));

it.each([
  ['{\n  "a": {\n    "b": 1\n  },\n  "c": [{ "d": 1 }]\n}', ['key a 2 0', 'key b 3 1', 'key c 5 0']],
  ['{ "a": "b: {", "c": "\\"d\\": 1" } // "e": 1', ['key a 1 0', 'key c 1 0']],
  ['[{ "a": 1 }]', []],
])('JSON: %j', (text, names) => expect(namesOf('a.json', text)).toEqual(names));

test('TOML', () => {
  const text = 'name = "x"\n[tool.a]\nb = 1\nc = """\nd = 2\n"""\n[[bin]]\n"e f" = 3\n# g = 4\n';
  expect(namesOf('a.toml', text)).toEqual([
    'key name 1 0',
    'key tool.a 2 0',
    'key b 3 1',
    'key c 4 1',
    'key bin 7 0',
    'key e f 8 1',
  ]);
  expect(namesOf('a.toml', '[a]\n[a.b]\nc = 1\n[ab]\n')).toEqual([
    'key a 1 0',
    'key a.b 2 1',
    'key c 3 2',
    'key ab 4 0',
  ]);
});

it.each([
  ['# A\ntext\n## B ##\n####### no\n#no', ['heading A 1 0', 'heading B 3 1']],
  ['```sh\n# no\n```\n~~~~\n# no\n~~~\n# no\n~~~~\n# Yes', ['heading Yes 9 0']],
  ['---\n# no\n---\n# Yes', ['heading Yes 4 0']],
  ['<!-- a\n# no\n-->\n# Yes <!-- b -->', ['heading Yes 4 0']],
  ['    # code\n  # Yes', ['heading Yes 2 0']],
  ['Title\n=====\n\nPart\n---\n# A', ['heading Title 1 0', 'heading Part 4 1', 'heading A 6 0']],
  ['text\nmore\n---\n\n- item\n---\n> quote\n---\n| a |\n---\n\n---\n', []],
])('Markdown: %j', (text, names) => expect(namesOf('a.md', text)).toEqual(names));

test('files with a grammar, and all others, have no entries', () => {
  for (const path of ['a.ts', 'a.py', 'a.css', 'a.txt', 'Makefile'])
    expect(namesOf(path, '# A\na: 1\n')).toBeUndefined();
  expect(entriesOf({ path: 'Untitled-1', language: 'markdown', lf: '# A' })).toHaveLength(1);
});

describe('answers', () => {
  const SQL = {
    'db/schema.sql': '-- Two.\nCREATE TABLE a (b int);\nCREATE TABLE s.c (d int);\nCREATE VIEW v AS SELECT 1;\n',
  };
  const YAML = { 'deploy.yaml': 'version: 1\nservices:\n  web:\n    image: x\n  db:\n' };
  const MD = { 'docs/guide.md': '# Guide\n\n## Use\n' };
  /** Instead of a list that would be empty. */
  const OUTLINE = 'Outline of `db/schema.sql`:\n\nTables: `a` (line 2), `s.c` (line 3).\n\nViews: `v` (line 4).';
  const TABLES = 'Tables of `db/schema.sql`: `a` (line 2), `s.c` (line 3).';
  it.each<[string, Record<string, string>, unknown]>([
    ['Which tables are defined here?', SQL, TABLES],
    ['What tables does this file have?', SQL, TABLES],
    ['Quais tabelas são definidas neste arquivo?', SQL, 'Tabelas de `db/schema.sql`: `a` (linha 2), `s.c` (linha 3).'],
    ['Which indexes are defined?', SQL, OUTLINE],
    ['Where is c defined?', SQL, '`s.c` is defined on line 3: `CREATE TABLE s.c (d int);`.'],
    ['Where is s.c defined?', SQL, '`s.c` is defined on line 3: `CREATE TABLE s.c (d int);`.'],
    ['Where is `use`?', MD, undefined],
    ['Where is the table c defined?', SQL, '`s.c` is defined on line 3: `CREATE TABLE s.c (d int);`.'],
    [
      'What does this file define?',
      MD,
      'Outline of `docs/guide.md`:\n\nHeadings:\n\n- `Guide` (line 1)\n  - `Use` (line 3)',
    ],
    ['Which headings are there?', SQL, OUTLINE],
    ['Which columns does a have?', SQL, undefined],
    [
      'What are the top-level keys?',
      YAML,
      'Outline of `deploy.yaml`:\n\nKeys:\n\n- `version` (line 1)\n- `services` (line 2)\n  - `web` (line 3)\n  - `db` (line 5)',
    ],
    [
      'Quais são as chaves?',
      YAML,
      'Estrutura de `deploy.yaml`:\n\nChaves:\n\n- `version` (linha 1)\n- `services` (linha 2)\n  - `web` (linha 3)\n  - `db` (linha 5)',
    ],
    ['Where is web defined?', YAML, '`web` is defined on line 3: `web:`.'],
    ['Which tables are defined?', YAML, expect.stringMatching(/^Outline of `deploy.yaml`:\n\nKeys:/)],
    ['Where is image set?', YAML, '`image` is defined on line 4: `image: x`.'],
    ['Where is the section Use?', MD, '`Use` is defined on line 3: `## Use`.'],
    ['How many tables are there?', SQL, TABLES],
    ['Which tables are there?', { 'a.toml': 'x = 1\n[a]\n[[b]]\n' }, 'Tables of `a.toml`: `a` (line 2), `b` (line 3).'],
    ['Which tables are there?', { 'a.toml': 'x = 1\n' }, 'Outline of `a.toml`:\n\nKeys: `x` (line 1).'],
    ['Where is `runs-on`?', { 'a.yml': 'runs-on: x\n' }, '`runs-on` is defined on line 1: `runs-on: x`.'],
    ['Which headings does this file have?', MD, 'Headings of `docs/guide.md`: `Guide` (line 1), `Use` (line 3).'],
    ['Quais títulos há?', MD, 'Títulos de `docs/guide.md`: `Guide` (linha 1), `Use` (linha 3).'],
    ['Which tables are defined?', { 'a.sql': '' }, '`a.sql` defines nothing at its top level.'],
  ])('%s %j', async (question, files, answer) => expect(await ask(question, files)).toEqual(answer));

  test('outlines have all entries with their depth', async () => {
    expect(await ask('/outline', YAML)).toBe(
      'Outline of `deploy.yaml`:\n\nKeys:\n\n- `version` (line 1)\n- `services` (line 2)\n  - `web` (line 3)\n  - `db` (line 5)',
    );
    expect(await ask('What is this file for?', MD)).toBe(
      'Outline of `docs/guide.md`:\n\nHeadings:\n\n- `Guide` (line 1)\n  - `Use` (line 3)',
    );
    expect(await ask('/callers a', SQL)).toBe(
      'Kvasir cannot read this from `db/schema.sql`. `a` is defined on line 2: `CREATE TABLE a (b int);`.',
    );
    expect((await known('/outline', SQL))?.note).toBe('from the code of db/schema.sql, not written by the model');
  });
});
