/** Tests the figures of a pass and the command line of the suite `typing`. */
import { describe, expect, test } from 'vitest';
import { typingOptions } from './typingBench.ts';
import { type Pass, passFigures, variantFigures, variantTable } from './typingFigures.ts';

const pass = (variant: string, more: Partial<Pass> = {}): Pass => ({
  variant,
  seconds: 2,
  keys: [
    { at: 0, shownAt: 40 },
    { at: 100 },
    { at: 200, shownAt: 500 },
    { at: 1000, shownAt: 1301 },
    { at: 2000, accepted: 'four' },
  ],
  requests: { asked: 4, givenUp: 1, ahead: 2 },
  tokens: { prompt: 80, written: 20 },
  stepMs: 1500,
  processorMs: 2500,
  ...more,
});

describe('figures of a pass', () => {
  test('shares are of all keys, times only of keys with a completion', () => {
    expect(passFigures(pass('all'))).toEqual({
      keys: 5,
      asked: 4,
      givenUp: 1,
      ahead: 2,
      promptTokens: 80,
      writtenTokens: 20,
      stepSeconds: 1.5,
      processorSeconds: 2.5,
      shown: 3 / 5,
      inTime: 2 / 5,
      p50Ms: 300,
      p95Ms: 301,
      accepted: 1,
      acceptedCharacters: 4,
    });
  });

  test('a pass without any shown completion has no times', () => {
    const { shown, inTime, p50Ms } = passFigures(pass('all', { keys: [{ at: 0 }] }));
    expect({ shown, inTime, p50Ms }).toEqual({ shown: 0, inTime: 0, p50Ms: Number.NaN });
  });

  test('variants keep the order of their first passes, and each has figures over its passes', () => {
    const passes = [
      pass('all'),
      pass('none', { stepMs: 3000 }),
      pass('none', { stepMs: 5000 }),
      pass('all', { stepMs: 2500 }),
    ];
    const figures = variantFigures(passes);
    expect(figures.map(({ variant, stepSeconds }) => [variant, stepSeconds.median, stepSeconds.samples])).toEqual([
      ['all', 2, [1.5, 2.5]],
      ['none', 4, [3, 5]],
    ]);
    const [head, , all, none] = variantTable(figures)
      .split('\n')
      .map((line) => line.split(' | '));
    expect([all?.length, none?.length]).toEqual([head?.length, head?.length]);
    expect(none?.[head!.indexOf('steps, s')]).toBe('4.00 (3.00–5.00)');
    expect(none?.[head!.indexOf('keys with a completion, %')]).toBe('60.0 (60.0–60.0)');
  });
});

describe('options', () => {
  test('by default, every variant runs twice at the recorded speed', () => {
    expect(typingOptions({})).toMatchObject({ rounds: 2, speed: 1, threads: 0, chat: false });
    expect(typingOptions({ only: 'neither,all', speed: '2.5', rounds: '3', threads: '1', chat: true })).toEqual({
      variants: ['neither', 'all'],
      rounds: 3,
      speed: 2.5,
      threads: 1,
      chat: true,
    });
  });

  test.each([
    { only: 'all,nothing' },
    { only: '' },
    { rounds: '0' },
    { rounds: 'two' },
    { speed: '0' },
    { speed: 'fast' },
    { threads: '-1' },
  ])('%j is refused with its name', (given) => {
    const [name] = Object.keys(given);
    expect(() => typingOptions(given)).toThrow(`--${name} `);
  });
});
