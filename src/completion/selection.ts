/** How a completion and the suggestion selected in IntelliSense's list become one text. Pure. */

/** The selected suggestion: `text` replaces [start, end) of the document. */
export interface SelectedSuggestion {
  start: number;
  end: number;
  text: string;
}

/**
 * What to show in place of [selected.start, selected.end): the suggestion's text with the rest of the completion behind it.
 * undefined when the completion does not go on as the suggestion does; the editor shows nothing else while the list is open.
 */
export function extendSelection(documentText: string, offset: number, selected: SelectedSuggestion, insert: string): string | undefined {
  if (selected.end !== offset) return undefined;
  const typed = documentText.slice(selected.start, offset);
  if (!selected.text.startsWith(typed)) return undefined;
  const remainder = selected.text.slice(typed.length);
  return insert.startsWith(remainder) && insert.length > remainder.length ? typed + insert : undefined;
}
