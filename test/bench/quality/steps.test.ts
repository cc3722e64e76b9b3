import { expect, test } from 'vitest';
import type { ScoredHole } from './figures.ts';
import { stepsTable } from './steps.ts';

const hole = (fields: Partial<ScoredHole>): ScoredHole => ({
  layout: 'blockAndTail',
  kind: 'rest',
  midWord: false,
  source: 's',
  path: 'a.ts',
  language: 'typescript',
  offset: 1,
  numTaken: 4,
  numShown: 4,
  firstMs: 1,
  shown: true,
  exact: false,
  whole: false,
  firstWord: false,
  kept: 0,
  ...fields,
});
const step = (name: string, holes: ScoredHole[]) => ({
  name,
  bench: { shipped: 'blockAndTail' as const, items: { holes, questions: [], summaries: [] } },
});

test('each step has its shares of all completions and of shown ones in the shipped layout', () => {
  const first = step('v0', [
    hole({}),
    hole({ offset: 2, exact: true, firstWord: true, kept: 4 }),
    hole({ kind: 'line', language: 'python', exact: true }),
    hole({ layout: 'tail', exact: true }),
  ]);
  const second = step('+ more', [
    hole({ shown: false }),
    hole({ offset: 2, exact: true, firstWord: true, kept: 4 }),
    hole({ kind: 'line', language: 'python' }),
  ]);
  const rows = stepsTable([first, second]).split('\n').slice(2);
  expect(rows).toEqual([
    '| v0 | 50.0% | 0.0% | 0.0% | 50.0% | 0.0% | 0.0% | 100.0% | 100.0% | 100.0% | 50.0% | 50.0% | 2.0 |',
    '| + more | 50.0% | 0.0% | 0.0% | 50.0% | 0.0% | 0.0% | 0.0% | 0.0% | 50.0% | 100.0% | 100.0% | 4.0 |',
  ]);
  expect(() => stepsTable([first, step('other', [hole({ offset: 9 })])])).toThrow(
    '"other" was asked other items than "v0".',
  );
});
