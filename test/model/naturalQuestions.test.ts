/**
 * Sixty questions as people ask them, half in Portuguese, half without a file, to the built-in model. No answer is about
 * something that does not exist: facts are read from the files, everything else is refused in one sentence.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../engine/cli/cliClient.ts';
import { BUILT_IN } from '../support/builtIn.ts';

const { name } = BUILT_IN.manifest;
const REFUSED = `${name} is too small for this: choose a larger model.`;
const UNATTACHED = `No file is attached, and ${name} answers only about files. Attach one, and ask again.`;

const ABOUT_FILES: readonly (readonly [file: string, question: string, answer: string | RegExp])[] = [
  [
    'ledger.ts',
    'Where is nextId changed?',
    /^Assignments to `nextId`: `Ledger\.add` \(line 27\), `Ledger\.reset` \(line 37\)\. First values of `nextId`: `Ledger` \(line 17\)\.$/,
  ],
  [
    'ledger.ts',
    'Which functions change total?',
    'Assignments to `total`: `Ledger.balance` (line 32). First values of `total`: `Ledger.balance` (line 31).',
  ],
  [
    'ledger.ts',
    'Which methods can raise an exception?',
    /^Thrown in `src\/ledger\.ts`:\n\n- `Ledger\.add` \(line 24\): `TypeError`\n- `Ledger\.add` \(line 25\): `OverdraftError`\n- `load` \(line 52\): `SyntaxError`\n\nWhat it calls may throw\.$/,
  ],
  [
    'ledger.ts',
    'What does add do?',
    /^The comment of `Ledger\.add` \(line 23\) says:\n\n> Adds one entry and returns its number\.$/,
  ],
  ['ledger.ts', 'What does formatCents do?', '`formatCents` is imported from `./money` (line 3).'],
  ['ledger.ts', 'What does `withdraw` do?', '`withdraw` does not appear in `src/ledger.ts`.'],
  [
    'ledger.ts',
    'Where is load defined?',
    "`load` has overloads. It is defined:\n\n- on line 46: `export function load(path: string): Ledger;`\n- on line 47: `export function load(path: string, currency: Currency): Ledger;`\n- on line 48: `export function load(path: string, currency: Currency = 'EUR'): Ledger {`",
  ],
  ['ledger.ts', 'What happens if cents is NaN?', REFUSED],
  ['ledger.ts', 'Write a test for add', REFUSED],
  ['stock.py', 'Where is OutOfStockError thrown?', 'Code that throws `OutOfStockError`: `Store.take` (line 28).'],
  [
    'stock.py',
    'What does low do?',
    /^No comment above `low` says what it does\. `\w+\.low` is defined on line 31: `def low\(self\):`\./,
  ],
  [
    'schema.sql',
    'Which tables are defined here?',
    'Tables of `src/schema.sql`: `customers` (line 2), `shop.orders` (line 7).',
  ],
  [
    'deploy.yaml',
    'What are the top-level keys?',
    /^Outline of `src\/deploy\.yaml`:\n\nKeys:\n\n- `version` \(line 2\)\n- `services` \(line 3\)\n/,
  ],
  [
    'guide.md',
    'Which headings are there?',
    'Headings of `src/guide.md`: `Store guide` (line 4), `Install` (line 13), `From source` (line 15), `Use` (line 17).',
  ],
  ['cache.go', 'What does Put do?', /^No comment above `Put` says what it does\. `Cache\.Put` is defined on line 18: /],
  ['ledger.ts', 'Onde é lançado o OverdraftError?', 'Código que lança `OverdraftError`: `Ledger.add` (linha 25).'],
  [
    'ledger.ts',
    'Onde o LIMIT é alterado?',
    'Nenhuma atribuição em `src/ledger.ts` altera `LIMIT`. Uma chamada pode. Primeiros valores de `LIMIT`: fora de funções (linha 13).',
  ],
  ['ledger.ts', 'O que balance lança?', '`balance` não lança nada diretamente. O que é chamado pode lançar.'],
  [
    'ledger.ts',
    'O que faz statement?',
    /^Nenhum comentário acima de `statement` diz o que faz\. A definição de `(?:\w+\.)?statement` está na linha 41: /,
  ],
  ['ledger.ts', 'O que este arquivo faz?', 'Accounts and what was booked to them.'],
  ['ledger.ts', 'Como eu uso o Ledger?', REFUSED],
  ['ledger.ts', 'Há algum erro neste código?', REFUSED],
  [
    'stock.py',
    'Quais funções alteram items?',
    'Atribuições a `items`:\n\n- `Store.__init__` (linha 16)\n- `Store.put` (linha 23): `self.items[name]`\n- `Store.take` (linha 29): `self.items[name]`',
  ],
  ['stock.py', 'Onde é lançado KeyError?', '`KeyError` não aparece em `src/stock.py`.'],
  [
    'stock.py',
    'Quais métodos podem lançar uma exceção?',
    /^Lançado em `src\/stock\.py`:\n\n- `Store\.put` \(linha 22\): `ValueError`\n- `Store\.take` \(linha 28\): `OutOfStockError`/,
  ],
  ['schema.sql', 'Quais índices existem?', 'Índices de `src/schema.sql`: `orders_by_customer` (linha 12).'],
  ['schema.sql', 'Quais colunas tem customers?', REFUSED],
  [
    'deploy.yaml',
    'Quais são as chaves deste arquivo?',
    /^Estrutura de `src\/deploy\.yaml`:\n\nChaves:\n\n- `version` \(linha 2\)\n/,
  ],
  ['guide.md', 'Quais títulos o arquivo tem?', /^Títulos de `src\/guide\.md`: `Store guide` \(linha 4\), /],
  ['cache.go', 'Quais funções alteram size?', 'Atribuições a `size`:\n\n- `Cache.Put` (linha 20): `c.size`'],
];

const WITHOUT_FILE: readonly (readonly [question: string, answer: string])[] = [
  ['Where is nextId changed?', UNATTACHED],
  ['what calls balance?', UNATTACHED],
  ['What does currentImpl do?', UNATTACHED],
  ['Which functions are exported?', UNATTACHED],
  ['Summarize this file', UNATTACHED],
  ['How do I sort an array in JavaScript?', UNATTACHED],
  ['What is a closure?', UNATTACHED],
  ['Explain recursion', UNATTACHED],
  ['What is the capital of France?', UNATTACHED],
  ['Write a function that adds two numbers', UNATTACHED],
  ['Is there a bug?', UNATTACHED],
  ['Which tables are defined here?', UNATTACHED],
  ['What does formatCents(-5) return?', REFUSED],
  ['What does `let a = 1` do?', REFUSED],
  ['What is the difference between let and const?', UNATTACHED],
  ['Onde é lançado o OverdraftError?', UNATTACHED],
  ['Quem chama `add`?', UNATTACHED],
  ['O que faz a classe Store?', UNATTACHED],
  ['Quais funções este arquivo define?', UNATTACHED],
  ['Resuma este arquivo', UNATTACHED],
  ['Como ordeno uma lista em Python?', UNATTACHED],
  ['O que é uma closure?', UNATTACHED],
  ['Explique recursão', UNATTACHED],
  ['Qual é a capital da França?', UNATTACHED],
  ['Escreva uma função que soma dois números', UNATTACHED],
  ['Há algum erro?', UNATTACHED],
  ['Quais tabelas existem?', UNATTACHED],
  ['O que soma(1, 2) retorna?', REFUSED],
  ['O que significa x = x + 1?', REFUSED],
  ['Traduza isto para Python', UNATTACHED],
];

const folder = await mkdtemp(join(tmpdir(), 'kvasir-questions-'));
const client = new Client();
beforeAll(async () => {
  await mkdir(join(folder, 'src'));
  await client.load({ modelDir: 'model', cacheDir: folder, precision: 'int8', maxBytes: 50e6, threads: 1 });
}, 120_000);
afterAll(async () => {
  await client.close();
  await rm(folder, { recursive: true, force: true });
});

async function answerTo(content: string, docIds: string[]) {
  const { text, source, tokenIds } = await client.generate({
    kind: 'chat',
    docIds,
    messages: [{ role: 'user', content }],
  });
  return { text, source, numTokens: tokenIds.length };
}

/** A refusal or a fact, of which the model has written nothing. */
const SOURCE = new Map([
  [REFUSED, 'refused'],
  [UNATTACHED, 'unattached'],
]);

test.each(ABOUT_FILES)('%s: %s', async (file, question, answer) => {
  const path = join(folder, 'src', file);
  await writeFile(path, await readFile(`test/fixtures/questions/${file}.txt`, 'utf8'));
  const { docId } = await client.openFile(path);
  const { text, source, numTokens } = await answerTo(question, [docId]);
  if (typeof answer === 'string') expect(text).toBe(answer);
  else expect(text).toMatch(answer);
  expect({ source, numTokens }).toEqual({ source: SOURCE.get(text) ?? 'files', numTokens: 0 });
});

test.each(WITHOUT_FILE)('without a file: %s', async (question, answer) => {
  expect(await answerTo(question, [])).toEqual({ text: answer, source: SOURCE.get(answer), numTokens: 0 });
});
