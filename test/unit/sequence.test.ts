import fc from 'fast-check';
import { expect, test } from 'vitest';
import { resolveSampling, Sequence } from '../../engine/sequence.ts';
import { StopStrings } from '../../engine/stopStrings.ts';

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

test('text that may begin a stop string is held back, no more and no less', () => {
  const filter = new StopStrings(['<end>']);
  expect([filter.push('a<'), filter.push('en'), filter.push('x'), filter.push('<e')].map(({ text }) => text)).toEqual(['a', '', '<enx', '']);
  expect(filter.flush()).toBe('<e');
});

test('property: a short stop string is cut where a search of the whole text finds it first', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 20 });
  const stop = fc.string({ unit: fc.constantFrom('a', 'b', '\n'), minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(text, stop, fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 20, maxLength: 20 }), (whole, wanted, sizes) => {
      const pieces: string[] = [];
      for (let at = 0, i = 0; at < whole.length; at += sizes[i++]!) pieces.push(whole.slice(at, at + sizes[i]!));
      const found = whole.indexOf(wanted);
      expect(streamed([wanted], pieces)).toBe(found < 0 ? whole : `${whole.slice(0, found)}|`);
    }),
    { seed: 14 },
  );
});

test('defaults are greedy and finite; nonsense is refused by name', () => {
  expect(resolveSampling({ seed: 3 })).toEqual({ temperature: 0, topP: 1, topK: 0, minP: 0, repetitionPenalty: 1, seed: 3, maxTokens: 128, stop: [], ignoreEos: false, logprobs: false, topLogprobs: 0 });
  expect(() => resolveSampling({ minP: 2 })).toThrow('minP is 2; it must be between 0 and 1.');
  expect(() => resolveSampling({ topK: 1.5 })).toThrow('topK');
  expect(() => resolveSampling({ repetitionPenalty: 0 })).toThrow('repetitionPenalty');
});

test('text that the detokeniser holds comes with the last token, or with the end from outside', () => {
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
