/** The example questions of an empty chat are answered from the file, in both languages of the interface. */
import { readFileSync } from 'node:fs';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { ask, loadGrammars } from './askFacts.ts';

let bundle: Record<string, string> = {};
vi.mock('../../../src/vscode.ts', () => ({
  l10n: {
    t: (text: string, ...values: string[]) => (bundle[text] ?? text).replace(/\{(\d)\}/g, (_, i) => values[Number(i)]!),
  },
}));
const { exampleQuestions } = await import('../../../src/chat/exampleQuestions.ts');

const inPortuguese = (): void => {
  bundle = JSON.parse(readFileSync('l10n/bundle.l10n.pt-br.json', 'utf8')) as Record<string, string>;
};
beforeAll(loadGrammars, 60_000);
beforeEach(() => {
  bundle = {};
});

const READER = '/** Reads. */\nexport async function readAll(a) {}\n/** Has rows. */\nexport class Reader {}';

test('example questions name definitions of the file', () => {
  expect(exampleQuestions(null)).toEqual([]);
  expect(exampleQuestions('x = 1')).toEqual(['Summarize this file', 'Which functions does this file define?']);
  expect(exampleQuestions(READER)).toEqual([
    'Summarize this file',
    'What does readAll() do?',
    'What are the parameters of readAll()?',
    'What does Reader do?',
  ]);
  expect(exampleQuestions('# Notes\n\nclass Reader\n', 'markdown')).toEqual(['Summarize this file']);
  expect(exampleQuestions('func run() {}\n', 'go')).toEqual(['Summarize this file', 'What does run() do?']);
});

test('example questions exist in Portuguese', () => {
  inPortuguese();
  expect(exampleQuestions('x = 1')).toEqual(['Resuma este arquivo', 'Quais funções este arquivo define?']);
  expect(exampleQuestions(READER)).toEqual([
    'Resuma este arquivo',
    'O que faz readAll()?',
    'Quais são os parâmetros de readAll()?',
    'O que faz Reader?',
  ]);
});

test('all example questions except the summary are answered from the file', async () => {
  const texts = [READER, 'export interface Row {}\n/** Lists. */\nfunction list() {}\n', 'x = 1'];
  for (const language of ['en', 'pt']) {
    if (language === 'pt') inPortuguese();
    for (const text of texts)
      for (const question of exampleQuestions(text, '', 9).slice(1))
        expect(await ask(question, { 'src/a.ts': text }), question).toBeDefined();
  }
});
