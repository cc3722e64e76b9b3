/** Text of a small model is shown up to the first sentence with a name that its source does not have. */
import { describe, expect, it } from 'vitest';
import { type NameCheck, withCheckedNames } from '../../../engine/tasks/checkedNames.ts';
import { shapeAnswer } from '../../../engine/tasks/chatTask.ts';

const CODE = 'class Basket {\n  addItem(item_name: string) {}\n}\nexport function total(basket: Basket) {}\n';
const KINDS: Record<string, string[]> = { Basket: ['class'], addItem: ['method'], total: ['function'] };
const instead = (): ReturnType<NameCheck['instead']> => ({ text: 'Outline', note: 'from the code', source: 'files' });
const ofSymbol = withCheckedNames(shapeAnswer, { texts: [CODE], instead });
const ofFile = withCheckedNames(shapeAnswer, {
  texts: [CODE],
  kindsOf: (name) => new Set(KINDS[name]),
  instead,
});

describe('the names in a text of a small model', () => {
  it.each([
    'Adds an item to the basket.',
    'Calls `addItem` with item_name. Returns the total.',
    'Calls addItem(item_name), e.g. for the file(s) of `total(basket)`.',
    'Returns `undefined`, or a `string`.',
    'Written in JavaScript.\n\n- `Basket`\n- `Basket`',
  ])('are in its source: %s', (text) => {
    expect(ofSymbol(text, true)).toEqual({ text, stop: true });
  });

  it.each([
    'Calls `removeItem`.',
    'Calls removeItem.',
    'Reads item_price.',
    'Calls remove() first.',
    'Uses `addItem` and `addItem`.',
    'Uses addItem, total() or addItem.',
    'Uses `addIt',
  ])('are not in its source, or repeated: %s', (text) => {
    expect(ofSymbol(text, true)).toEqual({ ...instead(), stop: true, isInstead: true });
    expect(ofSymbol(`Adds. ${text}`, true)).toMatchObject({
      text: 'Adds.',
      stop: true,
      note: 'cut before a sentence with a name that is not in the code',
    });
  });

  it.each([
    ['This file defines the class `Basket` and the function `total`.', true],
    ['This file defines the functions `total` and others.', true],
    ['This file defines the functions `total` and `Basket`.', false],
    ['The function `total` returns a value of type `string`.', true],
    ['This file defines the class `addItem`.', false],
    ['A basket for the basket. It defines the function `basket`.', false],
  ])('have the kinds that a summary of a file gives them: %s', (text, isTrue) => {
    expect(ofFile(text, true).text).toBe(isTrue ? text : 'Outline');
  });

  it('are checked before anything of their sentence is shown', () => {
    const text = 'Adds `addItem`.\n\nIt is a `Basket`. Sells `Fruit`. Ends.';
    let shown = '';
    for (let end = 0; end <= text.length; end++) {
      const { text: now } = ofSymbol(text.slice(0, end), false);
      expect(now.startsWith(shown)).toBe(true);
      expect(now).not.toContain('Fruit');
      shown = now;
    }
    expect(shown).toBe('Adds `addItem`.\n\nIt is a `Basket`.');
    expect(ofSymbol(text, true).text).toBe(shown);
  });

  it('keep the note on the text', () => {
    const noted = withCheckedNames((text) => ({ text, stop: false, note: 'a guess' }), { texts: [CODE], instead });
    expect(noted('Adds. Calls `removeItem`.', true)).toEqual({
      text: 'Adds.',
      stop: true,
      note: 'a guess; cut before a sentence with a name that is not in the code',
    });
  });

  it('leave nothing that only introduces a wrong sentence of a file', () => {
    expect(ofFile('Formats things. It', false).text).toBe('');
    expect(ofFile('Formats things.', true).text).toBe('Formats things.');
  });
});
