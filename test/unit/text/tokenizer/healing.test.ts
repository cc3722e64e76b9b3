/** Token healing: what comes off a prompt within a word, and what may then be generated. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { healed, type Healing, Opening } from '../../../../engine/text/tokenizer/healing.ts';
import { Tokenizer } from '../../../../engine/text/tokenizer/tokenizer.ts';
import { random } from '../../../support/model/fixtures.ts';

const root = join(import.meta.dirname, '../../../..');
const ofModel = await Tokenizer.load(join(root, 'model'));
const tokenizers = {
  model: ofModel,
  codellama: await Tokenizer.load(join(root, 'test/fixtures/tokenizers/codellama')),
  qwen2: await Tokenizer.load(join(root, 'test/fixtures/tokenizers/qwen2')),
};

const heal = (tokenizer: Tokenizer, prefix: string, healing: Healing = 'word'): { left: string; opening: string } => {
  const { ids, opening } = healed(tokenizer, prefix, healing);
  return { left: tokenizer.decode(ids), opening };
};

it.each(Object.entries(tokenizers))(
  '%s: the rest and the removed opening make up the text; a text that ends at a boundary is not healed',
  (_, tokenizer) => {
    for (const prefix of ['function f() {\n  retu', 'const x = getUserNa', 'import { read', 'let user_id', 'x = HTT']) {
      const { left, opening } = heal(tokenizer, prefix);
      expect(left + opening, prefix).toBe(prefix);
      expect(opening, prefix).not.toBe('');
      expect(prefix.length - opening.length, prefix).toBeGreaterThan(0);
    }
    for (const prefix of [
      'const x = ',
      'foo(',
      '',
      'retu',
      'x = sha256',
      'x = 123',
      'x = caf\u00e9',
      '// \u540d\u524d',
    ])
      expect(heal(tokenizer, prefix)).toEqual({ left: prefix, opening: '' });
  },
);

it('with healing by token, removes the last token outside words, except line breaks', () => {
  for (const [prefix, opening] of [
    ['const x = ', ' '],
    ['foo.', '.'],
    ['f(', '('],
    ['if (a) {\n  ', ''],
    ['x = caf\u00e9', ''],
    ['', ''],
  ] as const) {
    expect(heal(ofModel, prefix, 'token'), prefix).toEqual({
      left: prefix.slice(0, prefix.length - opening.length),
      opening,
    });
    expect(heal(ofModel, prefix, 'word').opening).toBe('');
  }
  expect(heal(ofModel, 'const x = getUserNa', 'token')).toEqual(heal(ofModel, 'const x = getUserNa'));
  expect(heal(ofModel, 'const x = getUserNa', 'none').opening).toBe('');
});

it('does not remove a part of more than three tokens', () => {
  const word = 'qxzvkwjqxzvkwj';
  expect(ofModel.encode(word).length).toBeGreaterThan(3);
  expect(heal(ofModel, `const x = ${word}`).opening).toBe('');
});

it('removes the last part of a word, not the whole word', () => {
  const { opening } = heal(ofModel, 'const x = this.getUserNa');
  expect('getUserNa'.endsWith(opening.trimStart())).toBe(true);
  expect(opening.length).toBeLessThan('getUserNa'.length);
});

it.each(Object.entries(tokenizers))(
  '%s: any way through what is allowed spells the opening, and no token that would is left out',
  (_, tokenizer) => {
    const next = random(3);
    const texts = Array.from({ length: tokenizer.vocabSize }, (_, id) =>
      tokenizer.addedTokens.has(id) ? '' : new TextDecoder().decode(tokenizer.vocabulary.bytesOf(id)),
    );
    for (const text of [' retu', 'Na', 'x', ' getUse', 'HTT']) {
      for (let round = 0; round < 3; round++) {
        const opening = new Opening(tokenizer, text);
        let said = '';
        let shown = '';
        for (let allowed = opening.allowed; allowed; allowed = opening.allowed) {
          const [before, rest] = [said, text.slice(said.length)];
          const wanted = texts.flatMap((token, id) =>
            token !== '' && (rest.startsWith(token) || token.startsWith(rest)) ? [id] : [],
          );
          expect(
            [...allowed].sort((a, b) => a - b),
            `${text}: ${before}`,
          ).toEqual(wanted);
          const chosen = allowed[Math.floor(next() * allowed.length)]!;
          said += texts[chosen];
          opening.push(chosen);
          shown += opening.hide(texts[chosen]!);
        }
        expect(said, text).toBe(text + shown);
        expect(opening.hide('more')).toBe('more');
      }
    }
  },
);
