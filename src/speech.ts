/** The user's language, as the editor has it. */
import { type Numbers, numbersIn } from './format.ts';
import type { Speech } from './translate.ts';
import * as vscode from './vscode.ts';

let numbers: Numbers | undefined;

export function speech(): Speech {
  // An editor has one language for as long as it runs.
  numbers ??= numbersIn(vscode.env.language);
  return { t: vscode.l10n.t, numbers };
}
