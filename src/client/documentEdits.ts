/** The editor's change events as the protocol's edits. Pure. */
import type { TextEdit } from '../../engine/protocol.ts';

/** The part of vscode.TextDocumentContentChangeEvent that is needed. */
export interface ContentChange {
  rangeOffset: number;
  rangeLength: number;
  text: string;
}

/**
 * Edits ordered last to first over the text before the event, or null when the event is not in that order (then the
 * offsets' base is unclear and the whole text has to be sent).
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
