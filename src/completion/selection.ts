/** How a completion and the suggestion selected in IntelliSense's list become one text. Pure. */

/** The selected suggestion: `text` replaces [start, end) of the document. */
export interface SelectedSuggestion {
  start: number;
  end: number;
  text: string;
}

/**
 * What accepting the suggestion would add at the cursor; undefined where it does more than that (it changes what stands
 * there), so that nothing can be shown behind it.
 */
export function addedBy(selected: SelectedSuggestion, documentText: string, offset: number): string | undefined {
  const typed = documentText.slice(selected.start, offset);
  return selected.end === offset && selected.text.startsWith(typed) ? selected.text.slice(typed.length) : undefined;
}
