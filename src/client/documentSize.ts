/**
 * How large a document is, and above which size it is none that Kvasir reads. The limit is far above source code that people
 * write: sending the whole text once, as the first request about a document does, must not be felt in the editor. At the limit
 * that was 27 ms for joining the lines and 7 ms for the message, on two cores of a server; edits are sent as edits.
 */
import type * as vscode from 'vscode';
import path from 'node:path';
import type { Translate } from '../translate.ts';

/** UTF-16 code units. */
const LARGEST = 10_000_000;

/** Length in UTF-16 code units, without building the text. */
export function lengthOf(document: vscode.TextDocument): number {
  return document.offsetAt(document.lineAt(document.lineCount - 1).range.end);
}

export function isTooLarge(document: vscode.TextDocument): boolean {
  return lengthOf(document) > LARGEST;
}

/** One sentence for the user. */
export function tooLarge(document: vscode.TextDocument, t: Translate): string {
  const millions = (characters: number) => Math.ceil(characters / 1e6);
  return t(
    '{0} is too large for Kvasir: {1} million characters, the limit is {2} million.',
    path.posix.basename(document.uri.path),
    millions(lengthOf(document)),
    millions(LARGEST),
  );
}
