/** A range that an edit will replace, while the text around it changes. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Anchor } from '../../../../src/edit/anchor.ts';

const TEXT = 'const a = 1;\nconst b = 2;\nconst c = 3;\n';
const RANGE = { start: 13, end: 25 };

function change(text: string, at: number, length: number, inserted: string) {
  return {
    after: text.slice(0, at) + inserted + text.slice(at + length),
    event: [{ rangeOffset: at, rangeLength: length, text: inserted }],
  };
}

test.each([
  ['an edit before it moves it', 0, 5, 'let', { start: 11, end: 23 }],
  ['text inserted at its start goes before it', 13, 0, '// b\n', { start: 18, end: 30 }],
  ['text inserted at its end stays out of it', 25, 0, ' // b', RANGE],
  ['an edit behind it leaves it', 26, 5, 'let', RANGE],
  ['an edit inside it is a conflict', 19, 1, 'x', undefined],
  ['an edit over its start is a conflict', 10, 5, '', undefined],
])('%s', (_, at, length, inserted, wanted) => {
  const anchor = new Anchor(TEXT, RANGE);
  const { after, event } = change(TEXT, at, length, inserted);
  anchor.follow(event);
  expect(anchor.locate(after)).toEqual(wanted);
});

test('an edit inside the range that is undone leaves it intact', () => {
  const anchor = new Anchor(TEXT, RANGE);
  const typed = change(TEXT, 19, 1, 'xyz');
  anchor.follow(typed.event);
  expect(anchor.locate(typed.after)).toBeUndefined();
  anchor.follow(change(typed.after, 19, 3, 'b').event);
  expect(anchor.locate(TEXT)).toEqual(RANGE);
});

test('moved text is found if it occurs once, and not if it occurs twice', () => {
  const anchor = new Anchor(TEXT, RANGE);
  expect(anchor.locate('const b = 2;\n')).toEqual({ start: 0, end: 12 });
  expect(new Anchor(TEXT, RANGE).locate('x const b = 2;\nconst b = 2;\n')).toBeUndefined();
});

test('after any edits outside, the range is found with the same text', () => {
  const outside = fc.record({
    before: fc.boolean(),
    at: fc.nat(),
    length: fc.nat(4),
    inserted: fc.string({ maxLength: 6 }),
  });
  fc.assert(
    fc.property(
      fc.string({ minLength: 1 }),
      fc.string({ minLength: 1, maxLength: 12 }),
      fc.string(),
      fc.array(outside, { maxLength: 20 }),
      (before, inside, behind, edits) => {
        let text = before + inside + behind;
        const anchor = new Anchor(text, { start: before.length, end: before.length + inside.length });
        let range = anchor.range;
        for (const edit of edits) {
          const [low, high] = edit.before ? [0, range.start] : [range.end, text.length];
          const at = low + (edit.at % (high - low + 1));
          const { after, event } = change(text, at, Math.min(edit.length, high - at), edit.inserted);
          text = after;
          anchor.follow(event);
          range = anchor.range;
          expect(text.slice(range.start, range.end)).toBe(inside);
          expect(anchor.locate(text)).toEqual(range);
        }
      },
    ),
  );
});
