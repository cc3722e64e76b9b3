/** The user's language, if the extension has texts in it. */
import { type Numbers, numbersIn, type Speech } from './format.ts';
import * as vscode from './vscode.ts';

let numbers: Numbers | undefined;

/** The translator and the number formats of that language. */
export function speech(): Speech {
  // The editor's language is fixed while it runs. Without texts in that language, both texts and numbers are English.
  numbers ??= numbersIn(vscode.l10n.bundle ? vscode.env.language : 'en');
  return { t: vscode.l10n.t, numbers };
}
