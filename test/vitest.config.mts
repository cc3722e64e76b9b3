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
