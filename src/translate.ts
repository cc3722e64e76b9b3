import type { Numbers } from './format.ts';

/**
 * Translates a text, for code that does not import the editor's API: vscode.l10n.t, or a stand-in that fills `{0}` and
 * so on.
 */
export type Translate = (text: string, ...values: (string | number)[]) => string;

/** The user's language: its texts and its number formats. */
export interface Speech {
  t: Translate;
  numbers: Numbers;
}
