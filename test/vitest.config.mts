import { defineConfig } from 'vitest/config';
import { longestFirst } from './longestFirst.mts';

// Of engine and model, what takes ten seconds and more; of unit by size does as well.
const LONGEST = longestFirst(
  'engine/pruning',
  'engine/random',
  'engine/soak',
  'engine/tiers',
  'engine/sparse',
  'engine/turns',
  'model/exactness',
  'model/lossyTiers',
  'model/assistant',
  'model/modelCompression',
  'model/shifted',
  'model/soak',
  'model/tiers',
  'model/qualityBench',
  'model/fixtures',
  'model/headsBench',
  'model/evaluateSketch',
  'model/speculation',
);

export default defineConfig({
  test: {
    root: '.',
    setupFiles: ['test/ceilingWatch.ts'],
    include: ['test/{unit,engine,model}/**/*.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
    sequence: { sequencer: LONGEST },
  },
});
