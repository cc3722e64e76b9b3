import { defineConfig } from 'vitest/config';
import { longestFirst } from './longestFirst.mts';

// The files of the engine and model suites that take ten seconds or more. The default order by size is good enough for the rest.
const LONGEST = longestFirst(
  'engine/pruning',
  'engine/random',
  'engine/soak',
  'engine/tiers',
  'engine/sparse',
  'engine/turns',
  'model/exactness',
  'model/lossyTiers',
  'model/assistantServer',
  'model/modelCompression',
  'model/shiftedReuse',
  'model/graphSoak',
  'model/cacheTiers',
  'model/fixtures',
  'model/drafts',
);

export default defineConfig({
  test: {
    root: '.',
    setupFiles: ['test/support/budgetWatch.ts'],
    include: ['test/{unit,engine,model}/**/*.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
    sequence: { sequencer: LONGEST },
  },
});
