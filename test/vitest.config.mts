import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { root: '.', include: ['test/{unit,engine,model}/**/*.test.ts'], testTimeout: 300_000, pool: 'forks', maxWorkers: 2 },
});
