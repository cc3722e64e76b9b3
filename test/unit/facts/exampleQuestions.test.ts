/** Example questions of an empty chat, in both languages of the interface. */
import { readFileSync } from 'node:fs';
import { beforeEach, expect, test, vi } from 'vitest';
import { factQuestion } from '../../../engine/facts/factQuestion.ts';

let bundle: Record<string, string> = {};
vi.mock('../../../src/vscode.ts', () => ({
  l10n: {
    t: (text: string, ...values: string[]) => (bundle[text] ?? text).replace(/\{(\d)\}/g, (_, i) => values[Number(i)]!),
  },
}));
const { exampleQuestions } = await import('../../../src/chat/questions.ts');

const inPortuguese = (): void => {
  bundle = JSON.parse(readFileSync('l10n/bundle.l10n.pt-br.json', 'utf8')) as Record<string, string>;
};
beforeEach(() => {
  bundle = {};
});

const READER = 'export async function readAll(a) {}\nexport class Reader {}';

test('they name what the file defines', () => {
  expect(exampleQuestions(null)).toEqual([]);
  expect(exampleQuestions('x = 1')).toEqual(['Summarize this file', 'Which functions does this file define?']);
  expect(exampleQuestions(READER)).toEqual([
    'Summarize this file',
    'What does readAll do?',
    'What are the parameters of readAll?',
    'Explain Reader',
  ]);
  expect(exampleQuestions('# Notes\n\nclass Reader\n', 'markdown')).toEqual(['Summarize this file']);
  expect(exampleQuestions('def flush(self):\n    pass\n')[1]).toBe('What does flush do?');
});

test('in Portuguese, too', () => {
  inPortuguese();
  expect(exampleQuestions('x = 1')).toEqual(['Resuma este arquivo', 'Quais funções este arquivo define?']);
  expect(exampleQuestions(READER)).toEqual([
    'Resuma este arquivo',
    'O que faz readAll?',
    'Quais são os parâmetros de readAll?',
    'Explique Reader',
  ]);
});

test('what is asked of a definition is understood alike in both: it is answered from the file', () => {
  const all = [READER, 'class Reader:\n    pass\n', 'export interface Reader {}\n', 'x = 1'].map(
    (text) => () =>
      exampleQuestions(text, '', 9)
        .slice(1)
        .map((question) => [question, factQuestion(question, 'src/a.ts')] as const),
  );
  const english = all.flatMap((ask) => ask());
  inPortuguese();
  const portuguese = all.flatMap((ask) => ask());
  expect(english.map(([, fact]) => fact?.kind)).not.toContain(undefined);
  for (const [i, [question, fact]] of portuguese.entries())
    expect([question, fact]).toEqual([question, { ...english[i]![1], language: 'pt' }]);
  expect(
    portuguese.map(([question]) => question).filter((question) => english.some(([same]) => same === question)),
  ).toEqual([]);
});
