/**
 * The recorded editing session: the contents of a trace file and the meaning of its events. Reads the session.
 * makeSession.ts makes it, editorReplay.ts plays it in an editor, sessionArrivals.ts turns it into engine messages.
 *
 * A trace is JSON lines: a header, one line per file (its text before the session), then the events in order. Each
 * event and each key comes `wait` milliseconds after the one before it. Offsets and positions refer to the text. Lines
 * and columns count from 1. The line end is LF.
 *
 * A `write` event puts the cursor at its place and types `text` there, key by key, as its author did: with slips that
 * are corrected and with an undo. A key is
 * - a character, or "\n" with the indentation of the next line, which an editor inserts by itself;
 * - "Backspace", which removes one character;
 * - "Undo" with a position in `text`: the author undoes until at most that much is left, and continues from there.
 *
 * A replay with completions accepts a completion if the author sees it and it is right: before a key with a wait of at
 * least LOOK_MS, if it saves at least MIN_SAVED keys and `text` continues with exactly that text. The saved keys are
 * left out.
 */
import { readFileSync } from 'node:fs';

export const TRACE = 'test/support/session/editing-session.jsonl';

/** The author sees a shown completion if the pause is at least this long. */
export const LOOK_MS = 300;

/** The author does not accept a completion that saves fewer keys. */
export const MIN_SAVED = 3;

interface SessionHeader {
  session: 1;
  seed: number;
  /** Commit of this repository that the texts come from. */
  commit: string;
}

export interface SessionFile {
  file: string;
  text: string;
}

export type Key = readonly [wait: number, key: string] | readonly [wait: number, key: 'Undo', to: number];

export interface WriteEvent {
  wait: number;
  do: 'write';
  line: number;
  column: number;
  text: string;
  keys: Key[];
}

export type SessionEvent =
  /** Makes a file the active one. */
  | { wait: number; do: 'open'; file: string }
  | WriteEvent
  /** Saves the active file. */
  | { wait: number; do: 'save' }
  /** Asks a question about the active file in the chat. */
  | { wait: number; do: 'ask'; text: string }
  /** Summarises the active file. */
  | { wait: number; do: 'summarize' };

export interface Session extends SessionHeader {
  files: SessionFile[];
  events: SessionEvent[];
}

export function readSession(path = TRACE): Session {
  const [header = {}, ...lines] = readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as object);
  return {
    ...(header as SessionHeader),
    files: lines.filter((line): line is SessionFile => 'text' in line && 'file' in line),
    events: lines.filter((line): line is SessionEvent => 'do' in line),
  };
}

export function printSession({ files, events, ...header }: Session): string {
  return `${[header, ...files, ...events].map((line) => JSON.stringify(line)).join('\n')}\n`;
}

/** The written part of the passage after a key, given the part before it. Slips are included. */
export function pressed(written: string, [, key, to]: Key): string {
  if (key === 'Backspace') return written.slice(0, -1);
  if (key === 'Undo') return written.slice(0, to);
  return written + key;
}

/** Offset of a line and column. */
export function offsetAt(text: string, line: number, column: number): number {
  let offset = 0;
  for (let n = 1; n < line; n++) offset = text.indexOf('\n', offset) + 1;
  return offset + column - 1;
}

/** Milliseconds from the first event to the last, with all keys pressed. */
export function duration(events: readonly SessionEvent[]): number {
  return events.reduce(
    (sum, event) => sum + event.wait + (event.do === 'write' ? event.keys.reduce((all, [wait]) => all + wait, 0) : 0),
    0,
  );
}

/** Text of each file at the end. */
export function finalTexts(session: Pick<Session, 'files' | 'events'>): Map<string, string> {
  const texts = new Map(session.files.map(({ file, text }) => [file, text]));
  let open = '';
  for (const event of session.events) {
    if (event.do === 'open') open = event.file;
    if (event.do !== 'write') continue;
    const text = texts.get(open) ?? '';
    const at = offsetAt(text, event.line, event.column);
    texts.set(open, text.slice(0, at) + event.text + text.slice(at));
  }
  return texts;
}
