/** Texts with places for values, as the editor's localization has them. */

/** Puts values into the places {0} to {9} of a text. */
export type Translate = (text: string, ...values: (string | number)[]) => string;

export const english: Translate = (text, ...values) =>
  text.replace(/\{(\d)\}/g, (_, i: string) => String(values[Number(i)]));
