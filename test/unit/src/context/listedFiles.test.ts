/** Processing many files lets the extension host do other work in between. */
import { afterEach, expect, test, vi } from 'vitest';

vi.mock('../../../../src/vscode.ts', () => ({}));
const { filtered } = await import('../../../../src/context/listedFiles.ts');

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

afterEach(() => void vi.restoreAllMocks());

test('the first matching items are returned in order, and later ones are not checked', async () => {
  const asked: number[] = [];
  const isEven = (n: number): boolean => asked.push(n) > 0 && n % 2 === 0;
  expect(await filtered(numbers(7), isEven)).toEqual([0, 2, 4, 6]);
  asked.length = 0;
  expect(await filtered(numbers(7), isEven, 2)).toEqual([0, 2]);
  expect(asked).toEqual([0, 1, 2]);
});

test('other work runs between slices of a long check', async () => {
  let clock = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
  let piece = 0;
  const pieces: number[] = [];
  const other = (): void => {
    pieces.push(piece);
    piece = 0;
    waiting = setImmediate(other);
  };
  let waiting = setImmediate(other);
  const slow = (): boolean => {
    clock += 2;
    piece++;
    return true;
  };
  expect(await filtered(numbers(100), slow)).toHaveLength(100);
  clearImmediate(waiting);
  expect(Math.max(piece, ...pieces)).toBe(3);
});
