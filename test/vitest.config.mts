import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { longestFirst } from './longestFirst.mts';

// The files that take fifteen seconds or more. The default order by size is good enough for the rest.
const LONGEST = longestFirst(
  'unit/cli/cli',
  'model/exactness',
  'model/cacheTiers',
  'model/fixtures',
  'model/modelSoak',
  'model/drafts',
  'model/native',
  'model/modelCompression',
  'model/assistantServer',
  'model/shiftedReuse',
  'model/lossyTiers',
  'engine/pruning',
  'engine/random',
  'model/drafts',
  'engine/tiers',
  'engine/laneLimit',
  'engine/sparse',
  'engine/soak',
  'model/chatHost',
);

/** All tests whose files lie in these folders. */
const testsIn = (...folders: string[]): string[] =>
  folders.flatMap((folder) =>
    readdirSync(`test/${folder}`, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => `test/${folder}/${name.replaceAll(path.sep, '/')}`),
  );

/** A module that one file has mocked may stay mocked for the next file of the same process. */
const mocks = (file: string): boolean => readFileSync(file, 'utf8').includes('vi.mock(');

/** Files that share processes: to load the engine again for each of them costs more than many of them do. */
const SHARED = testsIn('unit').filter((file) => !mocks(file));

export default defineConfig({
  test: {
    root: '.',
    setupFiles: ['test/support/budgetWatch.ts', 'test/support/equalBytes.ts'],
    testTimeout: 300_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
    sequence: { sequencer: LONGEST },
    projects: [
      { extends: true, test: { name: 'shared', isolate: false, include: SHARED } },
      { extends: true, test: { name: 'isolated', include: testsIn('unit', 'engine', 'model'), exclude: SHARED } },
    ],
  },
});
