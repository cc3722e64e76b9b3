/** Completions copy from other files that the host names, and from no others. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { AssistantServer } from '../../engine/server/assistantServer.ts';
import type { EngineMessage, HostMessage } from '../../engine/protocol/messages.ts';
import type { Task } from '../../engine/protocol/tasks.ts';

const cacheDir = await mkdtemp(join(tmpdir(), 'kvasir-copying-'));
afterAll(() => rm(cacheDir, { recursive: true, force: true }));

const OTHER = `import { createLedger } from './ledger';

export function openLedger(options: LedgerOptions): Ledger {
  const ledger = createLedger(options.fiscalYear, options.accountPlan);
  return ledger;
}
`;
const SOURCE = `import { createLedger } from './ledger';

export function copyLedger(options: LedgerOptions): Ledger {
  const ledger = createLedger(`;

test('a completion copies from another file that the host names, and an unknown file is ignored', async () => {
  const ends = new Map<string, (end: EngineMessage) => void>();
  const assistant = new AssistantServer((message) => {
    if (
      'requestId' in message &&
      (message.type === 'done' || message.type === 'error' || message.type === 'reply') &&
      message.requestId
    )
      ends.get(message.requestId)?.(message);
  });
  const ask = (message: HostMessage & { requestId: string }): Promise<EngineMessage> =>
    new Promise((resolve) => {
      ends.set(message.requestId, resolve);
      assistant.handle(message);
    });
  const complete = async (
    requestId: string,
    more: Partial<Extract<Task, { kind: 'complete' }>> = {},
  ): Promise<string> => {
    const end = await ask({
      type: 'generate',
      requestId,
      priority: 'completion',
      task: { kind: 'complete', docId: 'here', offset: SOURCE.length, showLowConfidence: true, ...more },
    });
    if (end.type !== 'done') throw new Error(JSON.stringify(end));
    return end.text;
  };
  expect(
    await ask({
      type: 'load',
      requestId: 'load',
      modelDir: 'model',
      cacheDir,
      precision: 'int8',
      maxBytes: 50e6,
      threads: 1,
    }),
  ).toMatchObject({ value: { model: { copiesFiles: true } } });
  assistant.handle({ type: 'configure', idleWork: false });
  assistant.handle({ type: 'documentChanged', docId: 'here', version: 1, path: '/p/copy.ts', text: `${SOURCE}\n` });
  const alone = await complete('alone');
  assistant.handle({ type: 'documentChanged', docId: 'there', version: 1, path: '/p/open.ts', text: OTHER });
  expect(await complete('not named')).toBe(alone);
  expect(await complete('named', { copySources: ['gone', 'there'] })).toBe('options.fiscalYear, options.accountPlan);');
  expect(alone).not.toContain('fiscalYear');
  // The file's own text is in the prompt already.
  expect(await complete('itself', { copySources: ['here'] })).toBe(alone);
});
