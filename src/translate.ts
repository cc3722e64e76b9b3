/** Texts in the user's language, for code that does not know the editor: vscode.l10n.t, or any stand-in that fills `{0}` and so on. */
export type Translate = (text: string, ...values: (string | number)[]) => string;
