/** The user's language, as far as the extension speaks it. */
import { type Numbers, numbersIn } from './format.ts';
import type { Speech } from './translate.ts';
import * as vscode from './vscode.ts';

let numbers: Numbers | undefined;

export function speech(): Speech {
  // An editor has one language for as long as it runs. Where there are no texts in it, they are English, and so are the numbers in them.
  numbers ??= numbersIn(vscode.l10n.bundle ? vscode.env.language : 'en');
  return { t: vscode.l10n.t, numbers };
}
