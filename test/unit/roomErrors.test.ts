/** What is said where there is no room: whose limit it is, too, where other windows share the memory. */
import { expect, test } from 'vitest';
import { KvCache } from '../../engine/cache/kvCache.ts';
import { kvBytesPerToken } from '../../engine/cache/kvRows.ts';
import { KvWindow } from '../../engine/cache/window.ts';
import { lacking, tooLarge } from '../../engine/roomErrors.ts';
import { fakeShape } from '../engine/fakeRunner.ts';

test('a limit that is a part of what windows share is said to be so, as many as there are now', () => {
  const cache = new KvCache({ window: new KvWindow(fakeShape(), 0), maxBytes: 100 * kvBytesPerToken(fakeShape()), softSlots: 100, clock: () => 0 });
  const said = (): string[] => [tooLarge(101, cache).message, lacking('memory', cache).message];
  const alone = said();
  for (const message of alone) expect(message).toMatch(/ or send less text\.$/);
  let numWindows = 3;
  cache.numWindows = () => numWindows;
  expect(said()).toEqual(alone.map((message) => `${message} That is this window’s part: 3 windows of the editor share the memory, and with fewer of them open each has more.`));
  numWindows = 1;
  expect(said()).toEqual(alone);
});
