/** Numbers and dates in the editor's language. */
import { expect, test } from 'vitest';
import { knownLanguage, numbersIn } from '../../../src/format.ts';

test.each([
  ['pt-br', 'pt-BR', '1.234'],
  ['en-US@posix', 'en', '1,234'],
  ['', 'en', '1,234'],
])('the language %j is read as %s', (language, known, number) => {
  expect(knownLanguage(language)).toBe(known);
  expect(numbersIn(language).count(1234)).toBe(number);
});
