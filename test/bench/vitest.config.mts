import { defineConfig } from 'vitest/config';

/** The tests of the benchmarks themselves: `npm run bench:test`. They are not part of `npm test`. */
export default defineConfig({
  test: {
    root: '.',
    setupFiles: ['test/support/budgetWatch.ts'],
    include: ['test/bench/**/*.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
  },
});
