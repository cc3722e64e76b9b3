/**
 * The list `kvasir.completion.languages`: which entry decides for a language, and how the toggle command changes the
 * list. Pure.
 */

/** Whether a glob of the list matches the document. */
type Matches = (glob: string) => boolean;

/**
 * The last matching entry decides: `*`, a language id or a glob, each with `!` for "not here". A list that starts with
 * `!` allows everything else.
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

/** The list with this language toggled, without duplicates. */
export function toggled(languages: readonly string[], languageId: string, matches: Matches): string[] {
  const wanted = !isWanted(languages, languageId, matches);
  const spelledOut = languages[0]?.startsWith('!') ? ['*', ...languages] : languages;
  const others = spelledOut.filter((entry) => entry !== languageId && entry !== `!${languageId}`);
  // A leading `!` entry would mean "everywhere else".
  while (others[0]?.startsWith('!')) others.shift();
  return isWanted(others, languageId, matches) === wanted
    ? others
    : [...others, wanted ? languageId : `!${languageId}`];
}
