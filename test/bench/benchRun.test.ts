/**
 * Runs `npm run bench` with wrong arguments. It must print one line that lists the valid choices and exit with status
 * 2. It must not measure or write anything.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const OUT = join('.cache', `bench-refused-${process.pid}`);
const bench = (...args: string[]) =>
  spawnSync(process.execPath, ['--disable-warning=MODULE_TYPELESS_PACKAGE_JSON', 'test/bench/run.mjs', ...args], {
    encoding: 'utf8',
    timeout: 60_000,
  });

test.each([
  [['nonsense', '--out', OUT], 'there is no suite nonsense; it is one of editor, engine, mixed,'],
  [['engine', '--out', OUT, '--frobnicate'], 'unknown option --frobnicate; known are --help, --out, --shape,'],
  [['engine', '--out', OUT, '-x'], 'unknown option -x; known are --help'],
  [['engine', '--out'], "Option '--out <value>' argument missing"],
  [['engine', 'mixed', '--out', OUT], 'unexpected argument mixed: one suite at a time'],
  [['engine'], '--out DIR is missing'],
  [['editor', '--out', OUT, '--shape', 'tiny'], 'suite editor has no --shape; it has --out'],
  [['engine', '--out', OUT, '--rounds', 'some'], '--rounds some: it must be a whole number'],
  // `npm run bench` checks these values for all suites. Some suites would fail only halfway through the run.
  ...['engine', 'tiers', 'long', 'kv', 'peers'].map(
    (suite) =>
      [
        [suite, '--out', OUT, '--shape', 'huge'],
        '--shape huge: it must be one of qwen2.5-0.5b, qwen2.5-1.5b, tiny\n',
      ] as const,
  ),
  [
    ['mixed', '--out', OUT, '--shape', 'huge'],
    '--shape huge: it must be one of qwen2.5-0.5b, qwen2.5-1.5b, tiny, starter\n',
  ],
  // The suite checks these values.
  [['engine', '--out', OUT, '--only', 'nothing'], '--only nothing: it must be one of '],
  [['quality', '--out', OUT, '--model', '.cache/none'], '--model .cache/none: there is no config.json in it'],
] as const)('%j', (args, message) => {
  const { status, stdout, stderr } = bench(...args);
  expect(stderr).toContain(`npm run bench: ${message}`);
  expect(stderr.trim().split('\n')).toHaveLength(1);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(existsSync(OUT)).toBe(false);
});
