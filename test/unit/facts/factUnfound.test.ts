/** What is said of names that no file defines, and where something is used. */
import { beforeAll, describe, expect, it, test } from 'vitest';
import { askedOfFiles } from '../../../engine/facts/factFiles.ts';
import { SourceDocument } from '../../../engine/text/syntax/sourceDocument.ts';
import { askFact, askFiles, loadGrammars } from '../../support/askFact.ts';

beforeAll(loadGrammars, 60_000);

const TS = `import { read, type Row } from './read';
import fs from 'node:fs';
export const LIMIT = 3;
export class Store {
  flush(force: boolean, rows: Row[]) {
    const late = fs.statSync('.');
    if (force) this.rows.push(...rows);
    return read(late);
  }
}
export function fill(rows: Row[]) {
  new Store().flush(true, rows);
  return LIMIT;
}
`;

const ONLY = 'This model knows only what stands in the file.';

describe('in one file', () => {
  it.each<[string, string]>([
    // Nowhere: also what may be no name at all.
    ['What does remove do?', `\`remove\` does not stand in \`src/a.ts\`. ${ONLY}`],
    ['explain recursion', `\`recursion\` does not stand in \`src/a.ts\`. ${ONLY}`],
    ['what does JSON.parse do?', `\`JSON.parse\` does not stand in \`src/a.ts\`. ${ONLY}`],
    ['what does the class Basket do?', `\`Basket\` does not stand in \`src/a.ts\`. ${ONLY}`],
    ['what type is depth in flush?', `\`depth\` does not stand in \`src/a.ts\`. ${ONLY}`],
    ['how is make used?', `\`make\` does not stand in \`src/a.ts\`. ${ONLY}`],
    ['O que faz remove?', '`remove` não está em `src/a.ts`. Este modelo só sabe o que está no arquivo.'],
    // From elsewhere.
    ['What does read do?', '`read` is imported from `./read` (line 1). Its code is there, not in this file.'],
    ['which fields does Row have?', '`Row` is imported from `./read` (line 1). Its code is there, not in this file.'],
    ['what does fs.statSync return?', '`fs` is imported from `node:fs` (line 2). Its code is there, not in this file.'],
    ['O que faz read?', '`read` é importado de `./read` (linha 1). O código está lá, não neste arquivo.'],
    // There, and defined nowhere.
    ['What does push do?', '`push` stands in line 7: `if (force) this.rows.push(...rows);`.'],
    ['O que faz push?', '`push` está na linha 7: `if (force) this.rows.push(...rows);`.'],
    [
      'what is late?',
      "`late` stands in line 6: `const late = fs.statSync('.');`, and in line 8: `return read(late);`.",
    ],
    [
      'what does rows mean?',
      '`rows` is a parameter of `Store.flush` (line 5) and `fill` (line 11). `rows` stands in the lines 5, 7, 11 and 12.',
    ],
    [
      'o que é rows?',
      '`rows` é um parâmetro de `Store.flush` (linha 5) e `fill` (linha 11). `rows` está nas linhas 5, 7, 11 e 12.',
    ],
    // As it is written there.
    ['what does PUSH do?', '`push` stands in line 7: `if (force) this.rows.push(...rows);`.'],
  ])('%s', async (question, expected) => expect(await askFact(question, TS, 'src/a.ts')).toBe(expected));

  it.each([
    'what does fill do?',
    'explain why',
    'explain more',
    'how does it work?',
    'what does the loop do?',
    'explain thoroughly',
    'explain now',
    'which functions call themselves?',
    'who calls fill from outside?',
    'how do I use types?',
    'explique detalhadamente',
  ])('for the model: %s', async (question) => expect(await askFact(question, TS, 'src/a.ts')).toBeUndefined());

  it('what errors may have spoilt is not said to be undefined', async () => {
    expect(await askFact('what does gone do?', `${TS}function half( {\n  gone();\n`, 'src/a.ts')).toBe(
      '`gone` stands in line 16: `gone();`.',
    );
  });

  it('in a language without facts: only that it stands nowhere', async () => {
    expect(await askFact('what does remove do?', 'func add() {}\n', 'a.go')).toBe(
      `\`remove\` does not stand in \`a.go\`. ${ONLY}`,
    );
    expect(await askFact('what does add do?', 'func add() {}\n', 'a.go')).toBeUndefined();
  });
});

describe('where something is used', () => {
  it.each<[string, string]>([
    [
      'Where is Store used?',
      '`Store` is defined in line 4: `export class Store {`. Its name also stands in line 12: `new Store().flush(true, rows);`.',
    ],
    [
      'how is LIMIT used?',
      '`LIMIT` is defined in line 3: `export const LIMIT = 3;`. Its name also stands in line 13: `return LIMIT;`.',
    ],
    [
      'who uses fill?',
      '`fill` is defined in line 11: `export function fill(rows: Row[]) {`. Its name stands in no other line.',
    ],
    [
      'which functions use Row?',
      '`Row` is imported from `./read` (line 1). Its name also stands in line 5: `flush(force: boolean, rows: Row[]) {`, and in line 11: `export function fill(rows: Row[]) {`.',
    ],
    [
      'Onde é usado Store?',
      'A definição de `Store` está na linha 4: `export class Store {`. O nome também está na linha 12: `new Store().flush(true, rows);`.',
    ],
    [
      'quem usa fill?',
      'A definição de `fill` está na linha 11: `export function fill(rows: Row[]) {`. O nome não está em nenhuma outra linha.',
    ],
    ['how do I use fill?', '`fill` is declared in line 11: `function fill(rows: Row[])`.'],
    ['Como uso fill?', 'A declaração de `fill` está na linha 11: `function fill(rows: Row[])`.'],
    ['which functions call read?', '`read` is called in line 8: `return read(late);`.'],
    ['quais funções chamam read?', '`read` é chamado na linha 8: `return read(late);`.'],
  ])('%s', async (question, expected) => expect(await askFact(question, TS, 'src/a.ts')).toBe(expected));

  it('in many places, and of two of one name', async () => {
    expect(await askFact('where is f used?', `function f() {}\n${'f();\n'.repeat(3)}`, 'a.ts')).toBe(
      '`f` is defined in line 1: `function f() {}`. Its name also stands in the lines 2, 3 and 4.',
    );
    expect(
      await askFact(
        'where is go used?',
        'class A { go() {} }\nclass B { go() {} }\nclass C { go() {} }\nx.go();\n',
        'a.ts',
      ),
    ).toMatch(/`class C { go\(\) {} }`\n\nIts name also stands in line 4: `x\.go\(\);`\.$/);
  });
});

test('of several files', async () => {
  const files = { 'src/a.ts': TS, 'src/b.ts': 'import { fill } from "./a";\nfill([]);\nlist.push(1);\n' };
  expect(await askFiles('what does remove do?', files)).toBe(
    '`remove` does not stand in `src/a.ts` or `src/b.ts`. This model knows only what stands in the files.',
  );
  expect(await askFiles('what does push do?', files)).toBe(
    '`src/a.ts`: `push` stands in line 7: `if (force) this.rows.push(...rows);`.\n\n`src/b.ts`: `push` stands in line 3: `list.push(1);`.',
  );
  // What one of them defines.
  expect(await askFiles('what does fill do?', files)).toBeUndefined();
  expect(await askFiles('where is fill used?', files)).toBe(
    '`src/a.ts`: `fill` is defined in line 11: `export function fill(rows: Row[]) {`. Its name stands in no other line.\n\n`src/b.ts`: `fill` is imported from `./a` (line 1). Its name also stands in line 2: `fill([]);`.',
  );
});

test('code in the conversation may be meant', async () => {
  const earlier = [
    { role: 'user', content: 'Write remove' },
    { role: 'assistant', content: '```ts\nfunction remove() {}\n```' },
  ] as const;
  const docs = [new SourceDocument('src/a.ts', 'src/a.ts', TS)];
  expect(await askFiles('what does remove do?', { 'src/a.ts': TS }, { earlier })).toBeUndefined();
  expect(askedOfFiles([...earlier, { role: 'user', content: 'what does remove do?' }], docs)?.mayBeIn).toBe(false);
  expect(askedOfFiles([{ role: 'user', content: 'what does remove do?' }], docs)?.mayBeIn).toBe(true);
});
