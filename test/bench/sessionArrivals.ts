/**
 * Turns the recorded session into protocol messages with their arrival times. No completion is accepted, so every key
 * is pressed and the messages do not depend on answers. Includes the editor's wait before a request and the abort at
 * the next key. Does not include the editor's cache of past results.
 */
import type { HostMessage } from '../../engine/protocol/messages.ts';
import { offsetAt, pressed, type Session } from '../support/session/session.ts';

export interface Arrival {
  /** Milliseconds since the session's start. */
  atMs: number;
  message: HostMessage;
}

export interface ArrivalOptions {
  /**
   * Pause in typing before a completion is requested. The first completion on a line has no such pause. Default: the
   * extension's default.
   */
  debounceMs?: number;
}

/**
 * Returns the arrivals in order of time. Request ids show the kind of request: "complete-1", "chat-1", "summarize-1".
 */
export function sessionArrivals(session: Session, { debounceMs = 50 }: ArrivalOptions = {}): Arrival[] {
  const texts = new Map(session.files.map(({ file, text }) => [file, text]));
  const versions = new Map<string, number>();
  const arrivals: Arrival[] = [];
  const counts = { complete: 0, chat: 0, summarize: 0 };
  let atMs = 0;
  let file = '';
  const send = (message: HostMessage, at = atMs): void => {
    arrivals.push({ atMs: at, message });
  };
  const nextId = (kind: keyof typeof counts): string => `${kind}-${++counts[kind]}`;

  /**
   * Types one passage. Requests a completion if the pause before the next key is long enough, and aborts it at that
   * key.
   */
  const write = (event: Extract<Session['events'][number], { do: 'write' }>): void => {
    const start = offsetAt(texts.get(file) ?? '', event.line, event.column);
    let written = '';
    let line = -1;
    for (const [i, key] of event.keys.entries()) {
      atMs += key[0];
      const after = pressed(written, key);
      const text = texts.get(file) ?? '';
      const same = commonLength(written, after);
      const edit = { start: start + same, end: start + written.length, text: after.slice(same) };
      texts.set(file, text.slice(0, edit.start) + edit.text + text.slice(edit.end));
      versions.set(file, (versions.get(file) ?? 0) + 1);
      send({ type: 'documentChanged', docId: file, version: versions.get(file) ?? 0, edits: [edit] });
      written = after;
      const lines = written.split('\n').length;
      const silence = lines === line ? debounceMs : 0;
      const pause = event.keys[i + 1]?.[0] ?? Number.POSITIVE_INFINITY;
      if (pause < silence) continue;
      line = lines;
      const requestId = nextId('complete');
      send(
        {
          type: 'generate',
          requestId,
          task: { kind: 'complete', docId: file, offset: start + written.length },
          priority: 'completion',
        },
        atMs + silence,
      );
      if (pause < Number.POSITIVE_INFINITY) send({ type: 'abort', requestId }, atMs + pause);
    }
  };

  for (const event of session.events) {
    atMs += event.wait;
    if (event.do === 'write') write(event);
    if (event.do === 'ask')
      send({
        type: 'generate',
        requestId: nextId('chat'),
        task: { kind: 'chat', docIds: [file], messages: [{ role: 'user', content: event.text }] },
        priority: 'chat',
      });
    if (event.do === 'summarize')
      send({
        type: 'generate',
        requestId: nextId('summarize'),
        task: { kind: 'summarize', docId: file },
        priority: 'summary',
      });
    if (event.do !== 'open') continue;
    file = event.file;
    if (versions.has(file)) continue;
    versions.set(file, 1);
    send({ type: 'documentChanged', docId: file, version: 1, path: file, text: texts.get(file) ?? '' });
  }
  return arrivals.sort((a, b) => a.atMs - b.atMs);
}

function commonLength(a: string, b: string): number {
  let n = 0;
  while (n < a.length && a[n] === b[n]) n++;
  return n;
}
