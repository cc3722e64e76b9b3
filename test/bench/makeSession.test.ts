import { statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Documents } from '../../engine/server/documents.ts';
import { makeSession } from './makeSession.ts';
import {
  duration,
  finalTexts,
  LOOK_MS,
  offsetAt,
  pressed,
  printSession,
  readSession,
  TRACE,
} from '../support/session/session.ts';
import { sessionArrivals } from './sessionArrivals.ts';

const session = readSession();
const writes = session.events.filter((event) => event.do === 'write');

test('the published session follows from its seed and texts', () => {
  expect(printSession(makeSession(session, finalTexts(session)))).toBe(printSession(session));
  expect(printSession(makeSession({ ...session, seed: session.seed + 1 }, finalTexts(session)))).not.toBe(
    printSession(session),
  );
});

test('about three minutes of typing in files of 200 to 2,000 lines, in less than a megabyte', () => {
  expect(duration(session.events)).toBeGreaterThan(170_000);
  expect(duration(session.events)).toBeLessThan(210_000);
  for (const { file, text } of session.files) {
    expect(text.split('\n').length, file).toBeGreaterThanOrEqual(200);
    expect(text.split('\n').length, file).toBeLessThanOrEqual(2000);
  }
  expect(statSync(TRACE).size).toBeLessThan(1e6);
});

test('the keys of each passage write it, with slips, undo and pauses long enough to read a completion', () => {
  for (const { text, keys } of writes) expect(keys.reduce(pressed, '')).toBe(text);
  const keys = writes.flatMap((event) => event.keys);
  const share = (holds: (key: (typeof keys)[number]) => boolean) => keys.filter(holds).length / keys.length;
  expect(share(([, key]) => key === 'Backspace')).toBeGreaterThan(0.01);
  expect(keys.filter(([, key]) => key === 'Undo').length).toBeGreaterThanOrEqual(2);
  expect(share(([wait]) => wait >= LOOK_MS)).toBeGreaterThan(0.05);
  expect(share(([wait]) => wait < 150)).toBeGreaterThan(0.4);
});

test('the session also has questions, summaries and switches between files', () => {
  const count = (what: string) => session.events.filter((event) => event.do === what).length;
  expect(count('ask')).toBeGreaterThanOrEqual(2);
  expect(count('summarize')).toBeGreaterThanOrEqual(2);
  expect(count('open')).toBeGreaterThan(session.files.length);
});

test('its messages lead to the same texts; completions are requested at the cursor and aborted at most once', () => {
  const documents = new Documents();
  const open = new Set<string>();
  let last = 0;
  let cursor = 0;
  for (const { atMs, message } of sessionArrivals(session)) {
    expect(atMs).toBeGreaterThanOrEqual(last);
    last = atMs;
    if (message.type === 'documentChanged' && 'text' in message)
      documents.open(message.docId, message.version, message.path, message.text);
    else if (message.type === 'documentChanged') {
      documents.edit(message.docId, message.version, message.edits);
      cursor = message.edits[0]!.start + message.edits[0]!.text.length;
    } else if (message.type === 'generate') {
      if (message.task.kind === 'complete') expect(message.task.offset).toBe(cursor);
      open.add(message.requestId);
    } else if (message.type === 'abort') expect(open.delete(message.requestId)).toBe(true);
  }
  for (const [file, text] of finalTexts(session)) expect(documents.get(file).text).toBe(text);
});

test('lines and columns count from 1', () => {
  expect([offsetAt('ab\ncd', 1, 1), offsetAt('ab\ncd', 1, 3), offsetAt('ab\ncd', 2, 2)]).toEqual([0, 2, 4]);
});
