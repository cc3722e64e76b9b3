import { defineConfig } from 'vitest/config';
import { longestFirst } from './longestFirst.mts';

// The files that take fifteen seconds or more. The default order by size is good enough for the rest.
const LONGEST = longestFirst(
  'model/modelSoak',
  'model/assistantServer',
  'unit/cli/cli',
  'model/cacheTiers',
  'model/shiftedReuse',
  'model/modelCompression',
  'model/exactness',
  'model/fixtures',
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
