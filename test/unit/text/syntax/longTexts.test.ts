/** Patterns over whole files take linear time: with quadratic time each of these texts would take half a minute. */
import { expect, it } from 'vitest';
import { placesOf } from '../../../../engine/text/copy/copiedLines.ts';
import { lineJudge } from '../../../../engine/text/syntax/lineErrors.ts';
import { isWrongImport } from '../../../../engine/text/syntax/importedModules.ts';

const SIZE = 300_000;
const MAX_MS = 5000;
const long = (unit: string): string => unit.repeat(Math.ceil(SIZE / unit.length));

it.each(['import a, ', 'import {a,\n', 'import ', 'export type ', 'export * '])(
  'imports are found in a text of %j',
  (unit) => {
    const others = [{ path: 'a/b.ts', text: `trim text ${long(unit)}` }];
    expect(isWrongImport('typescript', "import { trim } from './text';", 'a/c.ts', { others, packages: [] })).toBe(
      false,
    );
  },
  MAX_MS,
);

it(
  'imports of Python are found in a text of brackets that are not closed',
  () => {
    const others = [{ path: 'a/b.py', text: `trim text ${long('from a import (\n')}` }];
    expect(isWrongImport('python', 'from .text import trim', 'a/c.py', { others, packages: ['x'] })).toBe(false);
  },
  MAX_MS,
);

it.each(['a', 'a ', ' a'])(
  'copied lines are found in a text of %j',
  (unit) => {
    expect(placesOf(['a', 'b'], [long(unit)])).toEqual([]);
  },
  MAX_MS,
);

it(
  'a line that is too long is not judged',
  () => {
    const judge = (line: string) => lineJudge(line, line.length, () => undefined as never)('a');
    const calls: string[] = [];
    const withText = (written: string) => {
      calls.push(written);
      return undefined;
    };
    expect(judge(long('x<'))).toBe(true);
    expect(lineJudge('x<'.repeat(501), 1002, withText)('a')).toBe(true);
    expect(calls).toEqual([]);
    lineJudge('x<'.repeat(500), 1000, withText)('a');
    expect(calls).not.toEqual([]);
  },
  MAX_MS,
);
