/** Past completions: where they apply and what remains to insert. In the texts, `|` is the cursor. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CompletionCache } from '../../../../src/completion/completionCache.ts';
import { carryOver, onItsWay, type Place, agreement, withLineEnds } from '../../../../src/completion/place.ts';

function at(marked: string, docId = 'd'): Place {
  const offset = marked.indexOf('|');
  return { docId, text: marked.slice(0, offset) + marked.slice(offset + 1), offset };
}

function check(made: string, insert: string, now: string, expected: string | undefined): void {
  expect(carryOver(at(made), insert, at(now))?.text).toBe(expected);
}

describe('carryOver', () => {
  test('a completion applies at its own place', () => check('let a = |;\n', 'b + c', 'let a = |;\n', 'b + c'));
  test('the rest remains after typing part of it', () => check('let a = |;', 'b + c', 'let a = b +|;', ' c'));
  test('nothing remains after typing all of it', () => check('f(|)', 'x', 'f(x|)', undefined));
  test('it does not apply after typing past its end', () => check('f(|)', 'x', 'f(xy|)', undefined));
  test('it does not apply after typing something else', () => check('let a = |;', 'b + c', 'let a = d|;', undefined));
  test('the deleted text is part of the rest after deleting back', () => check('retu|', 'rn x', 're|', 'turn x'));
  test('it does not apply after deleting back and typing something else', () =>
    check('retu|', 'rn x', 'rep|', undefined));
  test('it does not apply after deleting a line end', () => check('a\nb|', 'c', 'a|', undefined));
  test('the rest remains after typing through a line break', () =>
    check('if (x) {|\n}', '\n  y();', 'if (x) {\n  |\n}', 'y();'));
  test('it does not apply after a change behind the cursor', () => check('f(|)', 'x', 'f(|);', undefined));
  test('it does not apply after a change before the cursor', () => check('f(|)', 'x', 'g(|)', undefined));
  test('it does not apply in another document', () =>
    expect(carryOver(at('f(|)', 'other'), 'x', at('f(|)'))).toBeUndefined());
  test('a bracket that the editor closed automatically is replaced by a text that contains it', () =>
    expect(carryOver(at('f|;'), '(a, [b])', at('f(a, [|]);'))).toEqual({ text: 'b])', replaces: 2 }));
  test('a quote that the editor closed automatically is replaced, too', () =>
    expect(carryOver(at('f(|);'), '"x"', at('f("|");'))).toEqual({ text: 'x"', replaces: 1 }));
  test('nothing remains after typing up to an automatically closed bracket', () =>
    check('f|', '(a)', 'f(a|)', undefined));
  test('it does not apply over a closing bracket that it does not contain', () => check('f|', '(a', 'f(|)', undefined));
  test('it does not apply over a closing bracket after a line break, which the editor could not show', () =>
    check('f|', '{\n}', 'f{|}', undefined));

  test('accepting the rest gives the same text as accepting the whole at once', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '(', ')', '\n'), maxLength: 6 });
    fc.assert(
      fc.property(text, text, text, text, fc.nat(6), (before, after, insert, typed, deleted) => {
        const kept = before.slice(0, Math.max(0, before.length - deleted));
        const place = { docId: 'd', text: kept + typed + after, offset: kept.length + typed.length };
        const left = carryOver({ docId: 'd', text: before + after, offset: before.length }, insert, place);
        if (left !== undefined)
          expect(place.text.slice(0, place.offset) + left.text + place.text.slice(place.offset + left.replaces)).toBe(
            before + insert + after,
          );
      }),
      { numRuns: 3000 },
    );
  });
});

describe('a running request', () => {
  const stands = (made: string, written: string, now: string) => agreement(at(made), written, at(now));
  test('agrees with typing along', () => expect(stands('a = |', 'b + c', 'a = b|')).toBe('agrees'));
  test('is undecided about text typed ahead of it', () => expect(stands('a = |', 'b', 'a = b +|')).toBe('undecided'));
  test('diverges from other text', () => expect(stands('a = |', 'b', 'a = c|')).toBe('diverged'));
  test('diverges after deleting back', () => expect(stands('a = |', 'b', 'a =|')).toBe('diverged'));
  test('agrees with a bracket that the editor closed automatically', () =>
    expect(stands('f|', '(a)', 'f(|)')).toBe('agrees'));
  test('may be followed by an edited text without a cursor', () => {
    expect(onItsWay(at('a = |;'), 'b + c', 'a = b +;')).toBe(true);
    expect(onItsWay(at('f|;'), '(a)', 'f();')).toBe(true);
    expect(onItsWay(at('a = |;'), 'b + c', 'a = c;')).toBe(false);
    expect(onItsWay(at('a = |;'), 'b + c', 'x\na = ;')).toBe(false);
  });
});

describe('CompletionCache', () => {
  const insertAt = (cache: CompletionCache, marked: string) => cache.lookup(at(marked))?.insertion.text;

  test('a completion made at the place comes first, then one typed through, then one deleted back to; the newest of each', () => {
    const cache = new CompletionCache();
    cache.add({ ...at('f(xy|)'), insert: 'z' });
    expect(insertAt(cache, 'f(x|)')).toBe('yz');
    cache.add({ ...at('f(|)'), insert: 'xyw' });
    cache.add({ ...at('f(|)'), insert: 'xyz' });
    cache.add({ ...at('f(xy|)'), insert: 'v' });
    expect(insertAt(cache, 'f(x|)')).toBe('yz');
    expect(insertAt(cache, 'f(xy|)')).toBe('v');
    expect(insertAt(cache, 'f(xyz|)')).toBeUndefined();
    cache.clear();
    expect(insertAt(cache, 'f(|)')).toBeUndefined();
  });

  test('the cache is bounded in number and characters, and always keeps the newest completion', () => {
    const cache = new CompletionCache();
    for (let i = 0; i < 100; i++) cache.add({ docId: `d${i % 20}`, text: 'x'.repeat(i), offset: 0, insert: 'y' });
    expect(cache.size).toBeLessThanOrEqual(8 * 24);
    for (let i = 0; i < 10; i++)
      cache.add({ docId: 'large', text: `${i}${'x'.repeat(5_000_000)}`, offset: 0, insert: 'y' });
    expect(cache.size).toBe(1);
    expect(cache.lookup({ docId: 'large', text: `9${'x'.repeat(5_000_000)}`, offset: 0 })?.insertion.text).toBe('y');
  });
});

test('a completion gets the line ends of the document', () => {
  expect(withLineEnds('a\nb\r\nc', '\r\n')).toBe('a\r\nb\r\nc');
  expect(withLineEnds('a\nb', '\n')).toBe('a\nb');
});
