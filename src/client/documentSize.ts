/**
 * The size of a document, and the largest size that Kvasir reads. The limit is far above hand-written code. Sending the
 * whole text, which the first request about a document does, took 27 ms for joining the lines and 7 ms for the message
 * at the limit, on two server cores.
 */
import type * as vscode from 'vscode';
import path from 'node:path';
import type { Translate } from '../format.ts';

/** UTF-16 code units. */
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
