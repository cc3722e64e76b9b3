/** Pins survive the engine, but not the closing of their files. */
import { expect, test, vi } from 'vitest';
import type { HostMessage } from '../../../../engine/protocol/messages.ts';
import type { FileStats } from '../../../../engine/protocol/stats.ts';

vi.mock('../../../../src/vscode.ts', () => ({}));
const { PinnedFiles } = await import('../../../../src/monitor/cacheView.ts');

const file = (docId: string, open: boolean, pinned: boolean): FileStats => ({ docId, open, pinned }) as FileStats;

test('a pin is sent again to an engine that does not know it, until it is removed or its file is closed', () => {
  const sent: HostMessage[] = [];
  const pins = new PinnedFiles({ notify: (message) => void sent.push(message) });
  pins.set('a', true);
  pins.set('b', true);
  expect(sent.splice(0)).toEqual([
    { type: 'pin', docId: 'a', pinned: true },
    { type: 'pin', docId: 'b', pinned: true },
  ]);
  pins.review({ files: [file('a', true, true), file('c', true, false)] });
  expect(sent).toEqual([]);
  // Another engine.
  pins.review({ files: [file('a', true, false)] });
  expect(sent.splice(0)).toEqual([{ type: 'pin', docId: 'a', pinned: true }]);
  pins.set('a', false);
  sent.length = 0;
  pins.review({ files: [file('a', true, false), file('b', false, false)] });
  pins.review({ files: [file('b', true, false)] });
  expect(sent).toEqual([]);
});
