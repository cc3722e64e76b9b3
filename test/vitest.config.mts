import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { root: '.', setupFiles: ['test/ceilingWatch.ts'], include: ['test/{unit,engine,model}/**/*.test.ts'], testTimeout: 300_000, hookTimeout: 120_000, pool: 'forks', maxWorkers: 2 },
});
