/** Suite `places`: what is emptied, and how an answer is judged. */
import { expect, test } from 'vitest';
import { seededRandom } from '../../support/engine/workload.ts';
import { type EmptiedPlace, functionAround, parsed, placesIn } from './places.ts';
import { judge, placesReport } from './placesSuite.ts';

const TEXT = `const map = new Map<string, number>();
function total(items: number[]): number {
  let sum = 0;
  for (const item of items) sum += item;
  return sum;
}
Shape.prototype.area = function () {
  const side = this.side;
  return side * side;
};
const label = \`total: \${total([1])} of\` + 'all'.replace(/a+/g, "b");
const view = <Box title="sums" size={label.length} />;
`;
const places = placesIn('a.tsx', TEXT, seededRandom(1)).sort((a, b) => a.offset - b.offset);

test('empties bodies and what stands between delimiters', () => {
  expect(places.map(({ kind, taken, name }) => [kind, taken.split('\n')[0], name].filter(Boolean))).toEqual([
    ['types', 'string, number'],
    ['body', 'let sum = 0;', 'total'],
    ['body', 'const side = this.side;', 'area'],
    ['template', 'total: '],
    ['expression', 'total([1])'],
    ['template', ' of'],
    ['string', 'all'],
    ['pattern', 'a+'],
    ['string', 'b'],
    ['attribute', 'sums'],
    ['attribute', 'label.length'],
  ]);
  for (const { text, offset, taken } of places) expect(text.slice(0, offset) + taken + text.slice(offset)).toBe(TEXT);
});

test('names the function around a line', () => {
  const file = parsed('a.tsx', TEXT);
  expect(functionAround(file, TEXT.indexOf('return sum'))).toBe('total');
  expect(functionAround(file, TEXT.indexOf('return side'))).toBe('area');
  expect(functionAround(file, 0)).toBeUndefined();
});

const of = (place: EmptiedPlace) => ({ ...place, source: 'a', path: 'a.tsx', language: 'typescript' as const });
const body = of(places.find(({ name }) => name === 'total')!);
const string = of(places.find(({ taken }) => taken === 'all')!);
const others = (text: string) => [{ source: 'a', path: 'b.tsx', language: 'typescript' as const, text }];

test('a literal is exact, other or does not parse', () => {
  expect(judge(string, 'all', [])).toMatchObject({ isShown: true, isRight: true, isBroken: false });
  expect(judge(string, 'none', [])).toMatchObject({ isRight: false, isBroken: false });
  expect(judge(string, "all'", [])).toMatchObject({ isRight: false, isBroken: true });
});

test('a body is copied if its lines stand elsewhere and not in the original', () => {
  const line = 'return items.reduce((sum, item) => sum + item, 0);';
  const elsewhere = (name: string) => others(`function ${name}(items) {\n  ${line}\n}\n`);
  expect(judge(body, 'let sum = 0;\n  return sum;', others(TEXT))).toMatchObject({ isRight: true });
  expect(judge(body, 'let sum = 0;\n  return sum;', others(TEXT)).copied).toBeUndefined();
  expect(judge(body, line, []).copied).toBeUndefined();
  expect(judge(body, line, elsewhere('other')).copied).toEqual({ lines: [line], from: 'other', isSameName: false });
  expect(judge(body, line, elsewhere('total')).copied).toMatchObject({ isSameName: true });
});

test('reports bodies by project and literals by kind', () => {
  const cell = {
    way: 'automatic' as const,
    source: 'a',
    n: 2,
    shown: 1,
    right: 1,
    broken: 0,
    lines: { right: 2, shown: 3 },
  };
  const copied = { sameName: 0, otherName: 1 };
  const report = placesReport({
    model: 'tiny',
    cells: [
      { ...cell, kind: 'body', copied },
      { ...cell, kind: 'string', copied, broken: 1 },
    ],
  });
  expect(report).toContain('| a | automatic | 2 | 1 | 1 | 3 | 2 | 0 | 1 |');
  expect(report).toContain('| string | automatic | 2 | 1 | 1 | 1 |');
});
