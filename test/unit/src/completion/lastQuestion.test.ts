/**
 * The last question always gets its text, whatever the user typed and selected in the list before it and however late
 * the engine is. The editor does not ask twice at one place, so a lost answer would leave the place without ghost text.
 */
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { part } from '../../../support/testLength.ts';
import { editor } from '../../../support/editor/fakeEditor.ts';
import type { ScriptedRequest } from '../../../support/editor/scriptedEngine.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeEditor.ts')).vscodeApi);
const { Harness } = await import('../../../support/editor/completionHarness.ts');

const BEFORE = 'x = ';
/** What the list may have selected, as what it adds at the cursor. */
const ENTRIES = ['', 'ab', 'ba', 'abb'];

const step = fc.oneof(
  fc.record({ action: fc.constant('type' as const), text: fc.constantFrom('a', 'b') }),
  fc.record({ action: fc.constant('select' as const), entry: fc.constantFrom(...ENTRIES) }),
  fc.record({ action: fc.constantFrom('backspace' as const, 'by hand' as const) }),
  fc.record({ action: fc.constantFrom('chunk' as const, 'done' as const), n: fc.nat(3) }),
  fc.record({ action: fc.constant('wait' as const), ms: fc.constantFrom(1, 20, 40, 60, 200, 300, 450, 690) }),
);

/** What the engine writes at the end of `text`: from each text another one. */
function continuation(text: string): string {
  const written = text.slice(BEFORE.length);
  let hash = 7;
  for (const character of written) hash = (hash * 31 + character.charCodeAt(0)) % 1009;
  return `${['a', 'b', 'ab', 'bb', 'abab', 'ba'][hash % 6]};`;
}

function rest({ task, text, written }: ScriptedRequest): string {
  return continuation(text.slice(0, task.offset) + (task.inserted ?? '')).slice(written.length);
}

beforeEach(() => {
  editor.reset();
  vi.useFakeTimers();
});
afterEach(() => void vi.useRealTimers());

test('after any typing, selecting and waiting, the text for the last place is shown in the end', async () => {
  const seen = { late: 0, selected: 0, byHand: 0, refreshed: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 25, size: 'max' }), async (steps) => {
      editor.reset();
      const h = new Harness(`${BEFORE}|\n`);
      let entry = '';
      let asked = '';
      let shown: string | undefined;
      const ask = (byCommand: boolean) => {
        const start = BEFORE.length;
        const typed = h.document.text.slice(start, h.cursor);
        const selected = entry ? { start, text: typed + entry } : undefined;
        const question = byCommand ? h.trigger(selected) : h.ask(selected && { selected });
        asked = `${typed} ${entry}`;
        void question?.items.then(([item]) => {
          if (!question.cancelled) shown = item && h.document.text.slice(start, item.start) + item.insertText;
        });
      };
      editor.onCommand = () => {
        seen.refreshed++;
        ask(true);
      };
      const moved = () => {
        const typed = h.document.text.slice(BEFORE.length, h.cursor);
        // The editor does not ask again for what it has asked.
        if (asked === `${typed} ${entry}`) return;
        shown = undefined;
        ask(false);
      };
      ask(false);
      for (const one of steps) {
        const request = 'n' in one ? h.engine.running[one.n % Math.max(1, h.engine.running.length)] : undefined;
        if (one.action === 'type') {
          const at = h.cursor;
          h.document.change({ offset: at, deleted: 0, text: one.text });
          editor.select(h.document, at + 1);
          entry = '';
          moved();
        } else if (one.action === 'backspace') {
          const at = h.cursor - 1;
          if (at < BEFORE.length) continue;
          h.document.change({ offset: at, deleted: 1, text: '' });
          editor.select(h.document, at);
          entry = '';
          moved();
        } else if (one.action === 'by hand') {
          seen.byHand++;
          ask(true);
        } else if (one.action === 'select') {
          entry = one.entry;
          moved();
        } else if (one.action === 'wait') await vi.advanceTimersByTimeAsync(one.ms);
        else if (request) {
          const text = rest(request);
          if (one.action === 'done') request.done(text);
          else if (text) request.chunk(text[0]!);
        }
        await vi.advanceTimersByTimeAsync(0);
        if (h.reason === 'not ready before the editor stops waiting; shown when ready') seen.late++;
      }
      // The engine writes all it was asked for.
      for (let turn = 0; turn < 10; turn++) {
        await vi.advanceTimersByTimeAsync(800);
        for (const request of h.engine.running) request.done(rest(request));
      }
      if (entry) seen.selected++;
      const wanted = h.document.text.slice(BEFORE.length, h.cursor) + entry;
      expect(shown?.startsWith(wanted) && shown.endsWith(';'), `${shown} (${h.reason})`).toBe(true);
      const closing = h.dispose();
      await vi.advanceTimersByTimeAsync(1000);
      await closing;
    }),
    { numRuns: part(3000), seed: 31 },
  );
  for (const [kind, count] of Object.entries(seen)) expect(count, kind).toBeGreaterThan(part(50));
}, 60_000);
