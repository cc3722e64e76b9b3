/** The beginning of the recorded session with real keystrokes: what is accepted is what was shown, and the file is right in the end. The whole of it is a benchmark. */
import { expect, test } from 'vitest';
import { replay } from '../bench/editorReplay.ts';
import { readSession } from '../bench/session.ts';
import { editorSuite } from './suite.ts';

const session = readSession();
/** One file, one passage: some twenty seconds. */
const events = session.events.slice(0, session.events.findIndex((event) => event.do === 'save') + 1);
const files = Object.fromEntries(session.files.map(({ file, text }) => [file, text]));

editorSuite('recorded session', files, (editor) => {
  test('its first passage: completions appear in the pauses, none is wrong after its accept', async () => {
    const result = await replay(editor(), { ...session, events });
    expect(result.wrong).toEqual([]);
    expect(result.recording.shown.filter(({ text }) => text !== '').length).toBeGreaterThan(2);
  });
});
