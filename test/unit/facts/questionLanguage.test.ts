/** A message's language by its words: it decides in which one an answer is that the model did not write. */
import { expect, test } from 'vitest';
import { languageOf } from '../../../engine/facts/questionLanguage.ts';

test.each([
  'Refatore a função flush',
  'Liste os testes',
  'Adicione testes',
  'Otimize a função',
  'Simplifique o laço',
  'Quero ver os erros',
  'Documente a classe Store',
  'Mostre os métodos da classe',
  'Existe algum erro aqui?',
  'Corrige o bug',
  'Gere testes',
  'Me ajuda',
  'Conserta o bug',
  'Como isso funciona?',
  'O que faz `the`?',
])('%s: Portuguese', (message) => expect(languageOf(message)).toBe('pt'));

test.each([
  'What is in para.ts?',
  'um, what does this do?',
  'What does `que` do?',
  'what is in src/faz.ts?',
  'Fix the bug',
  'Describe flush',
  'hm',
])('%s: English', (message) => expect(languageOf(message)).toBe('en'));
