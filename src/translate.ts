import type { Numbers } from './format.ts';

/** Texts in the user's language, for code that does not know the editor: vscode.l10n.t, or any stand-in that fills `{0}` and so on. */
export type Translate = (text: string, ...values: (string | number)[]) => string;

/** The user's language: its texts, and its numbers to fill them with. */
export interface Speech {
  t: Translate;
  numbers: Numbers;
}
