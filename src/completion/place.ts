/**
 * A completion's position, what remains of a completion made a few keys earlier, and what the suggestion selected in
 * IntelliSense's list adds. Compares whole texts, so any edit elsewhere makes a completion void. Pure.
 */

/** A cursor in one version of a document. */
export interface Place {
  docId: string;
  text: string;
  offset: number;
}

/** What to insert at a cursor. */
export interface Insertion {
  /** Never empty. */
  text: string;
  /** Characters after the cursor that `text` replaces: brackets and quotes that the editor closed automatically. */
  replaces: number;
}

/** How the text typed since compares with what a request has written so far. */
export type Agreement = 'agrees' | 'undecided' | 'diverged';

/** More closing characters than this were typed by the user. */
const MAX_CLOSERS = 4;
const NOT_CLOSERS = /[^)\]}>"'`]/;

/** The position after inserting `inserted` at the cursor. */
export function placeAfter({ docId, text, offset }: Place, inserted: string): Place {
  return inserted === ''
    ? { docId, text, offset }
    : { docId, text: text.slice(0, offset) + inserted + text.slice(offset), offset: offset + inserted.length };
}

/**
 * What remains at `place` of `insert`, which was made at `origin`; undefined where it does not apply or nothing is
 * left.
 */
export function carryOver(origin: Place, insert: string, place: Place): Insertion | undefined {
  const replaces = closersSince(origin, place);
  if (replaces === undefined) return undefined;
  const common = Math.min(origin.offset, place.offset);
  const typed = place.text.slice(common, place.offset);
  if (!insert.startsWith(typed)) return undefined;
  const deleted = origin.text.slice(common, origin.offset);
  // Deleting a line end moves to another line, where another completion belongs.
  if (deleted.includes('\n')) return undefined;
  if (!sameBefore(origin, place, common)) return undefined;
  const text = deleted + insert.slice(typed.length);
  return text.length > replaces && coversInOrder(text, place.text.slice(place.offset, place.offset + replaces))
    ? { text, replaces }
    : undefined;
}

/** How `place` compares with a running request made at `origin` that has written `written` so far. */
export function agreement(origin: Place, written: string, place: Place): Agreement {
  if (
    place.offset < origin.offset ||
    closersSince(origin, place) === undefined ||
    !sameBefore(origin, place, origin.offset)
  )
    return 'diverged';
  const typed = place.text.slice(origin.offset, place.offset);
  if (written.startsWith(typed)) return 'agrees';
  return typed.startsWith(written) ? 'undecided' : 'diverged';
}

/**
 * Whether `text` may be the result of typing along `written`. The cursor is assumed to be where that would leave it.
 */
export function onItsWay(origin: Place, written: string, text: string): boolean {
  const typed = origin.offset + text.length - origin.text.length;
  for (let closers = 0; closers <= MAX_CLOSERS; closers++) {
    if (agreement(origin, written, { docId: origin.docId, text, offset: typed - closers }) !== 'diverged') return true;
  }
  return false;
}

/** Number of closing characters added after the cursor; undefined if anything else there has changed. */
function closersSince(origin: Place, place: Place): number | undefined {
  const closers = place.text.length - place.offset - (origin.text.length - origin.offset);
  if (origin.docId !== place.docId || closers < 0 || closers > MAX_CLOSERS) return undefined;
  if (
    closers > 0 &&
    (place.offset <= origin.offset || NOT_CLOSERS.test(place.text.slice(place.offset, place.offset + closers)))
  )
    return undefined;
  return place.text.slice(place.offset + closers) === origin.text.slice(origin.offset) ? closers : undefined;
}

function sameBefore(origin: Place, place: Place, end: number): boolean {
  return origin.text.slice(0, end) === place.text.slice(0, end);
}

/**
 * Whether the characters of `covered` occur in `text` in this order and on its first line. Otherwise the editor cannot
 * show one over the other.
 */
function coversInOrder(text: string, covered: string): boolean {
  let at = 0;
  for (const character of covered) {
    at = text.indexOf(character, at) + 1;
    if (at === 0) return false;
  }
  return covered === '' || !text.slice(0, at).includes('\n');
}

/** The engine writes LF; the document may not. */
export function withLineEnds(text: string, eol: '\n' | '\r\n'): string {
  return eol === '\n' ? text : text.replace(/\r?\n/g, '\r\n');
}

/** The selected suggestion: `text` replaces [start, end) of the document. */
export interface SelectedSuggestion {
  start: number;
  end: number;
  text: string;
}

/**
 * What accepting the suggestion would add at the cursor. Undefined if it also changes the text before the cursor,
 * because nothing can be shown after it then.
 */
export function addedBy(selected: SelectedSuggestion, documentText: string, offset: number): string | undefined {
  const typed = documentText.slice(selected.start, offset);
  return selected.end === offset && selected.text.startsWith(typed) ? selected.text.slice(typed.length) : undefined;
}
