/** `Kvasir: Report Problem` leaves out names that it knows, such as that of the user's own model. */
import { expect, test, vi } from 'vitest';
import type { EngineHost } from '../../../../src/client/engineHost.ts';

const world = vi.hoisted(() => ({ content: '' }));
vi.mock('../../../../src/vscode.ts', () => ({
  version: '1.104.0',
  UIKind: { Web: 2 },
  Uri: { from: () => ({}) },
  env: { appName: 'VS Code', uiKind: 1, language: 'en' },
  window: { showTextDocument: async () => {} },
  workspace: {
    textDocuments: [],
    getConfiguration: () => ({ get: () => '/models/models--acme--Secret-7B/snapshots/0a1b' }),
    openTextDocument: async (options: { content: string }) => void Object.assign(world, options),
  },
}));
const { reportProblem } = await import('../../../../src/monitor/diagnostics.ts');

test('the report does not contain the name of the user’s own model', async () => {
  const text = 'Secret-7B has no chat template; the snapshot 0a1b is incomplete';
  const host = {
    client: {
      state: { kind: 'failed', message: text, retry: false },
      stats: async () => null,
      trace: async () => null,
    },
    problems: [{ at: new Date(0), level: 'error', text }],
  };
  const context = {
    extension: {
      packageJSON: {
        version: '0.1.0',
        contributes: { configuration: { properties: { 'kvasir.model': { default: '' } } } },
      },
    },
  };
  await reportProblem(context as never, host as unknown as EngineHost, undefined);
  expect(world.content).toContain('has no chat template');
  expect(world.content).not.toMatch(/Secret|0a1b/);
});
