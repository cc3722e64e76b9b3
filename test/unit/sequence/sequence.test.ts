import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { resolveSampling } from '../../../engine/sequence/sampler.ts';
import { Sequence } from '../../../engine/sequence/sequence.ts';
import { StopStrings } from '../../../engine/sequence/stopStrings.ts';

/** Pieces in, what was shown out; '|' marks where a stop string ended it. */
function streamed(stops: string[], pieces: string[]): string {
  const filter = new StopStrings(stops);
  let shown = '';
  for (const piece of pieces) {
    const { text, stopped } = filter.push(piece);
    shown += text;
    if (stopped) return `${shown}|`;
  }
  return shown + filter.flush();
}

test.each([
  [['END'], ['abE', 'N', 'D more'], 'ab|'],
  [['END'], ['abE', 'NE', 'ND'], 'abEN|'],
  [['END'], ['abEN'], 'abEN'],
  [['\n\n', '\n}'], ['a\n', 'b\n', '}'], 'a\nb|'],
  [['bc', 'abcd'], ['a', 'b', 'c', 'd'], 'a|'],
  [['aab'], ['aaaa', 'ab'], 'aaa|'],
  [[''], ['abc'], 'abc'],
  [[], ['abc'], 'abc'],
])('stops %j in %j', (stops, pieces, expected) => expect(streamed(stops, pieces)).toBe(expected));

test('exactly the text that may start a stop string is held back', () => {
  const filter = new StopStrings(['<end>']);
  expect([filter.push('a<'), filter.push('en'), filter.push('x'), filter.push('<e')].map(({ text }) => text)).toEqual([
    'a',
    '',
    '<enx',
    '',
  ]);
  expect(filter.flush()).toBe('<e');
});

test('property: a short stop string is cut where a search of the whole text finds it first', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 20 });
  const stop = fc.string({ unit: fc.constantFrom('a', 'b', '\n'), minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(
      text,
      stop,
      fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 20, maxLength: 20 }),
      (whole, wanted, sizes) => {
        const pieces: string[] = [];
        for (let at = 0, i = 0; at < whole.length; at += sizes[i++]!) pieces.push(whole.slice(at, at + sizes[i]!));
        const found = whole.indexOf(wanted);
        expect(streamed([wanted], pieces)).toBe(found < 0 ? whole : `${whole.slice(0, found)}|`);
      },
    ),
    { seed: 14 },
  );
});

test('sampling defaults are greedy and finite; invalid values are refused by name', () => {
  expect(resolveSampling({ seed: 3 })).toEqual({
    temperature: 0,
    topP: 1,
    topK: 0,
    repetitionPenalty: 1,
    seed: 3,
    maxTokens: 128,
    stop: [],
    ignoreEos: false,
    logprobs: false,
    topLogprobs: 0,
  });
  expect(() => resolveSampling({ temperature: -1 })).toThrow('temperature is -1; it must be a number from 0');
  expect(() => resolveSampling({ topK: 1.5 })).toThrow('topK');
  expect(() => resolveSampling({ repetitionPenalty: 0 })).toThrow('repetitionPenalty');
});

test('text held by the detokeniser is emitted with the last token or at an external end', () => {
  const make = (maxTokens: number): { sequence: Sequence; texts: string[]; ends: string[] } => {
    const texts: string[] = [];
    const ends: string[] = [];
    let held = '';
    const detokenizer = {
      push: (tokenId: number) => {
        const text = held;
        held = String.fromCharCode(tokenId);
        return text;
      },
      flush: () => held,
    };
    const sequence = new Sequence({
      id: 'a',
      priority: 'chat',
      promptIds: [1],
      sampling: { maxTokens, stop: ['bX'] },
      eosIds: [],
      detokenizer,
      onToken: ({ text }) => texts.push(text),
      onFinish: (reason, rest) => ends.push(`${reason}:${rest}`),
      onError: (error) => ends.push(error.code),
    });
    return { sequence, texts, ends };
  };
  const token = (char: string) => ({ tokenId: char.charCodeAt(0), logprob: -1, topLogprobs: [] });
  const whole = make(2);
  expect([whole.sequence.append(token('a'), 1), whole.sequence.append(token('b'), 2)]).toEqual([null, 'length']);
  whole.sequence.finish('length');
  expect(whole).toMatchObject({ texts: ['', 'ab'], ends: ['length:'] });
  expect(() => whole.sequence.finish('length')).toThrow('ends twice');

  const cut = make(9);
  for (const char of 'abc') cut.sequence.append(token(char), 1);
  cut.sequence.finish('abort');
  expect(cut).toMatchObject({ texts: ['', 'a', ''], ends: ['abort:b'] });
});

test('a forced beginning is neither shown nor counted; the first token is the first after it', () => {
  let left = 'ab';
  const opening = {
    get allowed() {
      return left === '' ? null : [left.charCodeAt(0)];
    },
    get isSaid() {
      return left === '';
    },
    push: (id: number) => {
      if (left !== '') left = left.slice(String.fromCharCode(id).length);
    },
    hide: (text: string) => (hidden++ < 2 ? '' : text),
  };
  let hidden = 0;
  const shown: string[] = [];
  const sequence = new Sequence({
    id: 's',
    priority: 'completion',
    promptIds: [1],
    sampling: { maxTokens: 2 },
    eosIds: [],
    opening,
    detokenizer: { push: (id) => String.fromCharCode(id), flush: () => '' },
    onToken: ({ text }) => shown.push(text),
    onFinish: () => {},
    onError: () => {},
  });
  const say = (character: string, now: number) =>
    sequence.append({ tokenId: character.charCodeAt(0), logprob: null, topLogprobs: [] }, now);
  expect(sequence.allowedIds).toEqual([97]);
  expect([say('a', 10), sequence.isForced, sequence.firstTokenAt]).toEqual([null, true, Number.NaN]);
  expect([say('b', 20), sequence.isForced, sequence.allowedIds]).toEqual([null, false, null]);
  expect([sequence.numGenerated, sequence.numAfterFirst]).toEqual([2, -1]);
  expect([say('c', 30), say('d', 40)]).toEqual([null, 'length']);
  expect(shown).toEqual(['', '', 'c', 'd']);
  expect(sequence.firstTokenAt).toBe(30);
  expect(sequence.numAfterFirst).toBe(1);
  expect(sequence.timings().tpotMs).toBe(10);
});

describe('reasoning before the answer', () => {
  /** Says the text character by character. `<` opens the reasoning, and `>` closes it. */
  const say = (text: string, sampling: { maxTokens: number; stop?: string[] }, maxContext = 99) => {
    let isOpen = false;
    let numTokens = 0;
    const aside = {
      most: 4,
      get isOpen() {
        return isOpen;
      },
      get numTokens() {
        return numTokens;
      },
      push: (character: string) => {
        const before = isOpen;
        isOpen = character === '<' || (isOpen && character !== '>');
        if (!before && !isOpen) return { answer: character, reasoning: '' };
        numTokens++;
        return { answer: '', reasoning: character };
      },
      flush: () => ({ answer: '', reasoning: '' }),
    };
    const told = { text: '', reasoning: '' };
    const sequence = new Sequence({
      id: 's',
      priority: 'chat',
      promptIds: [1],
      sampling,
      eosIds: [],
      aside,
      detokenizer: { push: (id) => String.fromCharCode(id), flush: () => '' },
      onToken: ({ text: shown, reasoning }) => {
        told.text += shown;
        told.reasoning += reasoning;
      },
      onFinish: () => {},
      onError: () => {},
    });
    sequence.maxContext = maxContext;
    let end = null;
    for (const character of text)
      end ??= sequence.append({ tokenId: character.charCodeAt(0), logprob: null, topLogprobs: [] }, 1);
    return { ...told, end, numReasoned: sequence.numReasoned };
  };

  test('does not use up the tokens of the answer', () =>
    expect(say('<a>bcd', { maxTokens: 2 })).toEqual({ text: 'bc', reasoning: '<a>', end: 'length', numReasoned: 3 }));

  test('ends at its own limit', () =>
    expect(say('<abcdef', { maxTokens: 1 })).toEqual({ text: '', reasoning: '<abc', end: 'length', numReasoned: 4 }));

  test('ends at the end of the context', () =>
    expect(say('<abcdef', { maxTokens: 1 }, 3)).toMatchObject({ reasoning: '<a', end: 'length' }));

  test('contains no stop string', () =>
    expect(say('<b>abc', { maxTokens: 9, stop: ['b'] })).toMatchObject({ text: 'a', end: 'stop' }));
});
