/** A document's text for the engine: its size, the largest size that Kvasir reads, and its changes as edits. Pure. */
import path from 'node:path';
import type * as vscode from 'vscode';
import type { Translate } from '../format.ts';
import type { TextEdit } from '../../engine/protocol/messages.ts';

/**
 * In UTF-16 code units, far above hand-written code. Sending the whole text, which the first request about a document
 * does, took 27 ms for joining the lines and 7 ms for the message at the limit, on two server cores.
 */
const MAX_LENGTH = 10_000_000;

/** Length in UTF-16 code units, without building the text. */
export function lengthOf(document: vscode.TextDocument): number {
  return document.offsetAt(document.lineAt(document.lineCount - 1).range.end);
}

export function isTooLarge(document: vscode.TextDocument): boolean {
  return lengthOf(document) > MAX_LENGTH;
}

/** One sentence for the user. */
export function tooLarge(document: vscode.TextDocument, t: Translate): string {
  const millions = (characters: number) => Math.ceil(characters / 1e6);
  return t(
    '{0} is too large for Kvasir: {1} million characters, the limit is {2} million.',
    path.posix.basename(document.uri.path),
    millions(lengthOf(document)),
    millions(MAX_LENGTH),
  );
}

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
