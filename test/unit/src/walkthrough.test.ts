/** Steps of the walkthrough are ticked by answers, not by opening a view. */
import { beforeEach, expect, test, vi } from 'vitest';
import type { Task } from '../../../engine/protocol/tasks.ts';

const contexts = vi.hoisted(() => [] as unknown[]);
vi.mock('../../../src/vscode.ts', () => ({
  commands: { executeCommand: async (...of: unknown[]) => contexts.push(of) },
}));
const { tickStep } = await import('../../../src/walkthrough.ts');

beforeEach(() => contexts.splice(0));

const messages = [{ role: 'user' as const, content: 'What does `add` do?' }];

test.each<[string, Task, string | undefined]>([
  ['a question about an open file', { kind: 'chat', messages, docIds: ['file:///a.ts'] }, 'kvasir.asked'],
  [
    'a question about a selection',
    { kind: 'chat', messages, docIds: [], snippets: [{ path: 'a.ts', text: 'x', startLine: 0 }] },
    'kvasir.asked',
  ],
  ['a question without a file', { kind: 'chat', messages, docIds: [] }, undefined],
  ['a summary', { kind: 'summarize', docId: 'file:///a.ts' }, 'kvasir.summarized'],
  ['the summary of a folder', { kind: 'summarizeFolder', path: 'src', docIds: [] }, 'kvasir.summarized'],
  ['a completion', { kind: 'complete', docId: 'file:///a.ts', offset: 0 }, undefined],
])('%s', async (_, task, step) => {
  await tickStep(task);
  // A key that stays true is not noticed by a walkthrough that is read later.
  const pulse = [
    ['setContext', step, true],
    ['setContext', step, false],
  ];
  expect(contexts).toEqual(step === undefined ? [] : pulse);
});
