import { defineConfig } from 'vitest/config';
import { longestFirst } from '../longestFirst.mts';
import { WORKERS } from './workers.mts';

export default defineConfig({
  test: {
    root: '.',
    include: ['test/vscode/*.test.ts'],
    globalSetup: 'test/vscode/globalSetup.ts',
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // The default of one second is too short for a window on a busy machine.
    // Each look costs processor time in the browser and here. The default of 50 ms slows down what is waited for.
    expect: { poll: { timeout: 20_000, interval: 150 } },
    // A window, a browser and an extension host race each other on a busy machine. The report names each test that
    // needed its second attempt, with its error.
    retry: 1,
    pool: 'forks',
    // The suites of a process share its window.
    isolate: false,
    maxWorkers: WORKERS,
    sequence: {
      sequencer: longestFirst(
        // These need windows of their own. A window that suites share would be closed for them.
        'vscode/chat',
        'vscode/robustness',
        'vscode/platform',
        'vscode/portuguese',
        'vscode/recordedSession',
        'vscode/edits',
        'vscode/startup',
        'vscode/trust',
        'vscode/disabled',
        'vscode/languageModelApi',
        // These share the window of their process.
        'vscode/cachePanel',
        'vscode/engineOptions',
        'vscode/oddFiles',
        'vscode/completionBehaviour',
        'vscode/commands',
        'vscode/limits',
        'vscode/completion',
        'vscode/assistant',
        'vscode/attach',
      ),
    },
  },
});
