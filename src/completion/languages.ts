/** The list `kvasir.completion.languages`: which entry decides for a language, and how the toggle changes it. Pure. */

/** Whether a glob of the list fits the document. */
type Matches = (glob: string) => boolean;

/**
 * The last entry that fits decides: `*`, a language id or a glob, each of them with `!` for "not here". A list that begins
 * with a `!` means everywhere else.
 */
export function isWanted(languages: readonly string[], languageId: string, matches: Matches): boolean {
  let wanted = languages[0]?.startsWith('!') ?? false;
  for (const entry of languages) {
    const name = entry.replace(/^!/, '');
    if (name === '*' || name === languageId || (/[*?./[{]/.test(name) && matches(name)))
      wanted = !entry.startsWith('!');
  }
  return wanted;
}

/** The list in which the language is switched over; nothing is said twice. */
export function toggled(languages: readonly string[], languageId: string, matches: Matches): string[] {
  const wanted = !isWanted(languages, languageId, matches);
  const spelledOut = languages[0]?.startsWith('!') ? ['*', ...languages] : languages;
  const others = spelledOut.filter((entry) => entry !== languageId && entry !== `!${languageId}`);
  // Without anything before them, they would come to mean "everywhere else".
  while (others[0]?.startsWith('!')) others.shift();
  return isWanted(others, languageId, matches) === wanted
    ? others
    : [...others, wanted ? languageId : `!${languageId}`];
}
