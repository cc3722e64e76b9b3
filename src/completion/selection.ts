/** Combines a completion with the suggestion selected in IntelliSense's list. Pure. */

/** The selected suggestion: `text` replaces [start, end) of the document. */
export interface SelectedSuggestion {
  start: number;
  end: number;
  text: string;
}

/**
 * What accepting the suggestion would add at the cursor. Undefined if it also changes the text before the cursor,
 * because nothing can be shown after it then.
 */
export function addedBy(selected: SelectedSuggestion, documentText: string, offset: number): string | undefined {
  const typed = documentText.slice(selected.start, offset);
  return selected.end === offset && selected.text.startsWith(typed) ? selected.text.slice(typed.length) : undefined;
}
