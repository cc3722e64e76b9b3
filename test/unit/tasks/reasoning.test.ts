/** What is reasoning and what is the answer, for every way to cut the text into tokens. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Reasoning, type ReasoningForm, type ReasoningStart } from '../../../engine/tasks/reasoning.ts';
import { part } from '../../support/testLength.ts';

const form = (start: ReasoningStart, isCode = false): ReasoningForm => ({
  open: '<think>',
  close: '</think>',
  start,
  isCode,
});

function split(pieces: readonly string[], given: ReasoningForm) {
  const reasoning = new Reasoning(given);
  const shown: string[] = [];
  let thought = '';
  for (const piece of pieces) {
    const part = reasoning.push(piece);
    shown.push(part.answer);
    thought += part.reasoning;
  }
  const end = reasoning.flush();
  return {
    answer: shown.join('') + end.answer,
    thought: thought + end.reasoning,
    shown,
    numTokens: reasoning.numTokens,
  };
}

describe('the answer and the reasoning of', () => {
  test.each<[string, ReasoningStart, string, string, string]>([
    ['a whole block', 'answer', '<think>\nHm.\n</think>\n\nTwo.', '\n\nTwo.', '\nHm.\n'],
    ['a block after white space', 'answer', '\n <think>a</think>b', 'b', 'a'],
    ['an empty block', 'answer', '<think>\n\n</think>\n\nTwo.', '\n\nTwo.', '\n\n'],
    ['an unclosed block', 'answer', '<think>\nHm. <b>', '', '\nHm. <b>'],
    ['a prompt that opens it', 'inside', 'Hm.\n</think>\nTwo.', '\nTwo.', 'Hm.\n'],
    ['a prompt that opens it, unclosed', 'inside', 'Hm. </thin', '', 'Hm. </thin'],
    ['a closing mark alone', 'unclear', 'Hm.\n</think>\nTwo.', '\nTwo.', 'Hm.\n'],
    ['no marks where some are likely', 'unclear', 'Two.', 'Two.', ''],
    ['a closing mark that begins', 'answer', '\n</think>\n\nTwo.', '\n\nTwo.', ''],
    ['a second block', 'answer', '<think>a</think>One.\n<think>b</think>\nTwo.', 'One.\n\nTwo.', 'ab'],
    ['a stray closing mark', 'answer', 'One.\n</think>\nTwo.', 'One.\n\nTwo.', ''],
    ['a mark in a sentence', 'answer', 'It finds `<think>` and </think>.', 'It finds `<think>` and </think>.', ''],
    ['a mark in code', 'answer', '```xml\n<think>\n</think>\n```\n', '```xml\n<think>\n</think>\n```\n', ''],
    ['a tag of another name', 'answer', '<thinker>', '<thinker>', ''],
    ['a comparison', 'answer', 'a\n<', 'a\n<', ''],
    ['an answer that ends in a mark', 'answer', 'a\n</thi', 'a\n', ''],
  ])('%s', (_, start, text, answer, thought) => {
    for (const pieces of [[text], [...text]]) expect(split(pieces, form(start))).toMatchObject({ answer, thought });
  });

  test('code, in which only the beginning may be reasoning', () => {
    const code = 'a\n<think>b</think>';
    expect(split([...code], form('answer', true))).toMatchObject({ answer: code, thought: '' });
    expect(split([...`<think>x</think>${code}`], form('answer', true))).toMatchObject({ answer: code, thought: 'x' });
  });
});

const parts = fc.constantFrom('<think>', '</think>', '<', '</', 'think>', '`', '```', '\n', ' ', 'Hm', '<thin', 'é');
const texts = fc.array(parts, { maxLength: 24 }).map((all) => all.join(''));
const starts = fc.constantFrom<ReasoningStart>('inside', 'answer', 'unclear');

test('however the text is cut, the parts are the same, and shown text is never taken back', () => {
  fc.assert(
    fc.property(texts, starts, fc.boolean(), fc.array(fc.nat(6)), (text, start, isCode, cuts) => {
      const pieces: string[] = [];
      let rest = text;
      for (const cut of cuts) {
        pieces.push(rest.slice(0, cut));
        rest = rest.slice(cut);
      }
      pieces.push(rest);
      const whole = split([text], form(start, isCode));
      const cutUp = split(pieces, form(start, isCode));
      expect(cutUp.answer).toBe(whole.answer);
      expect(cutUp.thought).toBe(whole.thought);
      let seen = '';
      for (const piece of cutUp.shown) {
        seen += piece;
        expect(whole.answer.startsWith(seen)).toBe(true);
      }
    }),
    { numRuns: part(2000), seed: 1 },
  );
});

test('no part of a mark is shown before it is known to be text', () => {
  const answers = fc
    .array(fc.constantFrom('One. ', 'Two.\n', 'é\n', '    x\n'), { maxLength: 6 })
    .map((all) => all.join(''));
  fc.assert(
    fc.property(answers, answers, starts, (thought, answer, start) => {
      const text = `${start === 'inside' ? '' : '<think>'}${thought}</think>${answer}\n</think>`;
      const { shown } = split([...text], form(start));
      expect(shown.join('')).not.toMatch(/[<>/]/);
      expect(shown.join('')).toBe(`${answer}\n`);
    }),
    { numRuns: part(800), seed: 2 },
  );
});

test('tokens of the reasoning are counted with its marks, and no others', () => {
  const tokens = ['<think>', '\nHm', '.', '</think>', '\n\n', 'Two', '.'];
  expect(split(tokens, form('answer')).numTokens).toBe(4);
  expect(split(tokens.slice(1), form('inside')).numTokens).toBe(3);
  expect(split(tokens.slice(1), form('unclear')).numTokens).toBe(3);
  expect(split(tokens.slice(4), form('answer')).numTokens).toBe(0);
  expect(split(tokens.slice(4), form('unclear')).numTokens).toBe(0);
  expect(split(['<thi', 'nk>', 'Hm', '</', 'think>', 'Two'], form('answer')).numTokens).toBe(5);
});
