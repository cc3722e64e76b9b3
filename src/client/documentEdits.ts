/** Converts the editor's change events to the protocol's edits. Pure. */
import type { TextEdit } from '../../engine/protocol/messages.ts';

/** The part of vscode.TextDocumentContentChangeEvent that is used. */
export interface ContentChange {
  rangeOffset: number;
  rangeLength: number;
  text: string;
}

/**
 * Edits ordered last to first over the text before the event. Returns null when the event has another order: the base
 * of the offsets is unclear then, and the whole text has to be sent.
 */
export function toEdits(changes: readonly ContentChange[]): TextEdit[] | null {
  const edits: TextEdit[] = [];
  let limit = Number.POSITIVE_INFINITY;
  for (const change of changes) {
    const end = change.rangeOffset + change.rangeLength;
    if (end > limit) return null;
    edits.push({ start: change.rangeOffset, end, text: change.text });
    limit = change.rangeOffset;
  }
  return edits;
}

/** Length of a text of `length` code units after `edits`. */
export function lengthAfter(length: number, edits: readonly TextEdit[]): number {
  return edits.reduce((sum, edit) => sum + edit.text.length - (edit.end - edit.start), length);
}
