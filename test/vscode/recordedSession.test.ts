/**
 * Replays the beginning of the recorded session with real keystrokes. Checks that accepted text equals the shown text
 * and that the final file is right. A benchmark replays the whole session.
 */
import { expect, test } from 'vitest';
import { replay } from './editorReplay.ts';
import { type EventLoopDelay, HELPER_FILES, whileMeasured } from './eventLoop.ts';
import { readSession } from '../support/session/session.ts';
import { residentBytes } from './processes.ts';
import { ownEditorSuite } from './suite.ts';

const session = readSession();
/** One file, one passage: about twenty seconds. */
const events = session.events.slice(0, session.events.findIndex((event) => event.do === 'save') + 1);
const files = Object.fromEntries(session.files.map(({ file, text }) => [file, text]));

ownEditorSuite('recorded session', { ...files, ...HELPER_FILES }, (editor) => {
  let before = 0;
  let delay: EventLoopDelay | undefined;

  test('in the first passage completions appear in the pauses, and none is wrong after its acceptance', async () => {
    before = residentBytes(editor().extensionHost);
    const { result, delay: measured } = await whileMeasured(editor(), () => replay(editor(), { ...session, events }));
    delay = measured;
    expect(result.wrong).toEqual([]);
    expect(result.recording.shown.filter(({ text }) => text !== '').length).toBeGreaterThan(2);
  });

  // The benchmark measures the delays on a quiet machine.
  test('complaint: memory of the extension host', () => {
    const grown = residentBytes(editor().extensionHost) - before;
    console.log(
      `event loop delay: P50 ${delay?.p50Ms.toFixed(1)} ms, P99 ${delay?.p99Ms.toFixed(1)} ms, longest ${delay?.maxMs.toFixed(0)} ms; ${(grown / 1e6).toFixed(0)} MB for engine, model and cache`,
    );
    expect(grown).toBeLessThan(500e6);
  });
});
