/** Past completions: where they hold and what is then left to insert. Texts are written 'before|after', the bar being the cursor. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { carryOver, CompletionCache, type Place, withLineEnds } from '../../src/completion/cache.ts';

function at(marked: string, docId = 'd'): Place {
  const offset = marked.indexOf('|');
  return { docId, text: marked.slice(0, offset) + marked.slice(offset + 1), offset };
}

function check(made: string, insert: string, now: string, expected: string | undefined): void {
  expect(carryOver({ ...at(made), insert }, at(now))).toBe(expected);
}

describe('carryOver', () => {
  test('at its own place', () => check('let a = |;\n', 'b + c', 'let a = |;\n', 'b + c'));
  test('typed through', () => check('let a = |;', 'b + c', 'let a = b +|;', ' c'));
  test('typed to its end: nothing is left', () => check('f(|)', 'x', 'f(x|)', ''));
  test('typed past its end', () => check('f(|)', 'x', 'f(xy|)', undefined));
  test('typed something else', () => check('let a = |;', 'b + c', 'let a = d|;', undefined));
  test('deleted back', () => check('retu|', 'rn x', 're|', 'turn x'));
  test('deleted back and typed differently', () => check('retu|', 'rn x', 'rep|', undefined));
  test('deleted over a line end', () => check('a\nb|', 'c', 'a|', undefined));
  test('typed through a line break', () => check('if (x) {|\n}', '\n  y();', 'if (x) {\n  |\n}', 'y();'));
  test('the text behind has changed', () => check('f(|)', 'x', 'f(|))', undefined));
  test('the text before has changed', () => check('f(|)', 'x', 'g(|)', undefined));
  test('another document', () => expect(carryOver({ ...at('f(|)', 'other'), insert: 'x' }, at('f(|)'))).toBeUndefined());

  test('accepting what is left always gives the text that accepting at once would have given', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\n'), maxLength: 6 });
    fc.assert(
      fc.property(text, text, text, text, fc.nat(6), (before, after, insert, typed, deleted) => {
        const kept = before.slice(0, Math.max(0, before.length - deleted));
        const place = { docId: 'd', text: kept + typed + after, offset: kept.length + typed.length };
        const left = carryOver({ docId: 'd', text: before + after, offset: before.length, insert }, place);
        if (left !== undefined) expect(place.text.slice(0, place.offset) + left + after).toBe(before + insert + after);
      }),
      { numRuns: 3000 },
    );
  });
});

describe('CompletionCache', () => {
  test('the newest that holds, never an empty one', () => {
    const cache = new CompletionCache();
    cache.add({ ...at('f(|)'), insert: 'x' });
    cache.add({ ...at('f(|)'), insert: 'xyz' });
    expect(cache.lookup(at('f(x|)'))).toBe('yz');
    expect(cache.lookup(at('f(xyz|)'))).toBeUndefined();
    cache.clear();
    expect(cache.lookup(at('f(|)'))).toBeUndefined();
  });
});

test('line ends of the document', () => {
  expect(withLineEnds('a\nb\r\nc', '\r\n')).toBe('a\r\nb\r\nc');
  expect(withLineEnds('a\nb', '\n')).toBe('a\nb');
});
