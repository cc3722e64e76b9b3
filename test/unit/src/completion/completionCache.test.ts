/** Past completions: where they hold and what is then left to insert. Texts are written 'before|after', the bar being the cursor. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CompletionCache } from '../../../../src/completion/completionCache.ts';
import { carryOver, onItsWay, type Place, standing, withLineEnds } from '../../../../src/completion/place.ts';

function at(marked: string, docId = 'd'): Place {
  const offset = marked.indexOf('|');
  return { docId, text: marked.slice(0, offset) + marked.slice(offset + 1), offset };
}

function check(made: string, insert: string, now: string, expected: string | undefined): void {
  expect(carryOver(at(made), insert, at(now))?.text).toBe(expected);
}

describe('carryOver', () => {
  test('at its own place', () => check('let a = |;\n', 'b + c', 'let a = |;\n', 'b + c'));
  test('typed through', () => check('let a = |;', 'b + c', 'let a = b +|;', ' c'));
  test('typed to its end: nothing is left', () => check('f(|)', 'x', 'f(x|)', undefined));
  test('typed past its end', () => check('f(|)', 'x', 'f(xy|)', undefined));
  test('typed something else', () => check('let a = |;', 'b + c', 'let a = d|;', undefined));
  test('deleted back', () => check('retu|', 'rn x', 're|', 'turn x'));
  test('deleted back and typed differently', () => check('retu|', 'rn x', 'rep|', undefined));
  test('deleted over a line end', () => check('a\nb|', 'c', 'a|', undefined));
  test('typed through a line break', () => check('if (x) {|\n}', '\n  y();', 'if (x) {\n  |\n}', 'y();'));
  test('the text behind has changed', () => check('f(|)', 'x', 'f(|);', undefined));
  test('the text before has changed', () => check('f(|)', 'x', 'g(|)', undefined));
  test('another document', () => expect(carryOver(at('f(|)', 'other'), 'x', at('f(|)'))).toBeUndefined());
  test('a bracket that the editor closed by itself is taken over by the text that has it', () =>
    expect(carryOver(at('f|;'), '(a, [b])', at('f(a, [|]);'))).toEqual({ text: 'b])', replaces: 2 }));
  test('a quote that the editor closed by itself', () =>
    expect(carryOver(at('f(|);'), '"x"', at('f("|");'))).toEqual({ text: 'x"', replaces: 1 }));
  test('typed to a bracket that has closed by itself: nothing is left', () => check('f|', '(a)', 'f(a|)', undefined));
  test('a closing bracket that the text does not have', () => check('f|', '(a', 'f(|)', undefined));
  test('a closing bracket that comes after a line break: the editor could not show it', () =>
    check('f|', '{\n}', 'f{|}', undefined));

  test('accepting what is left always gives the text that accepting at once would have given', () => {
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

describe('a request that is running', () => {
  const stands = (made: string, written: string, now: string) => standing(at(made), written, at(now));
  test('typed as it writes', () => expect(stands('a = |', 'b + c', 'a = b|')).toBe('agrees'));
  test('typed ahead of it', () => expect(stands('a = |', 'b', 'a = b +|')).toBe('undecided'));
  test('typed something else', () => expect(stands('a = |', 'b', 'a = c|')).toBe('diverged'));
  test('deleted back: it was asked about a longer text', () => expect(stands('a = |', 'b', 'a =|')).toBe('diverged'));
  test('typed with a bracket that closed by itself', () => expect(stands('f|', '(a)', 'f(|)')).toBe('agrees'));
  test('an edit tells by itself whether it is on the way', () => {
    expect(onItsWay(at('a = |;'), 'b + c', 'a = b +;')).toBe(true);
    expect(onItsWay(at('f|;'), '(a)', 'f();')).toBe(true);
    expect(onItsWay(at('a = |;'), 'b + c', 'a = c;')).toBe(false);
    expect(onItsWay(at('a = |;'), 'b + c', 'x\na = ;')).toBe(false);
  });
});

describe('CompletionCache', () => {
  const insertAt = (cache: CompletionCache, marked: string) => cache.lookup(at(marked))?.insertion.text;

  test('what was made there goes before what was typed through, that before what was deleted back; of each the newest', () => {
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

  test('bounded in number and in characters; the newest is always kept', () => {
    const cache = new CompletionCache();
    for (let i = 0; i < 100; i++) cache.add({ docId: `d${i % 20}`, text: 'x'.repeat(i), offset: 0, insert: 'y' });
    expect(cache.size).toBeLessThanOrEqual(8 * 24);
    for (let i = 0; i < 10; i++)
      cache.add({ docId: 'large', text: `${i}${'x'.repeat(5_000_000)}`, offset: 0, insert: 'y' });
    expect(cache.size).toBe(1);
    expect(cache.lookup({ docId: 'large', text: `9${'x'.repeat(5_000_000)}`, offset: 0 })?.insertion.text).toBe('y');
  });
});

test('line ends of the document', () => {
  expect(withLineEnds('a\nb\r\nc', '\r\n')).toBe('a\r\nb\r\nc');
  expect(withLineEnds('a\nb', '\n')).toBe('a\nb');
});
