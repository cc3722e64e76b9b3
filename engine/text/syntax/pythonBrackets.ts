/**
 * Finds closing brackets of new Python code that nothing opens. Reads strings and comments by their characters, because
 * a tree of unfinished Python code has errors anyway.
 */

/** A comment, a string with its closing quotes if it has them, or a bracket. */
const TOKEN = /#[^\n]*|("""|''')(?:\\[\s\S]|(?!\1)[\s\S])*(\1)?|(["'])(?:\\[\s\S]|(?!\3)[^\\\n])*(\3)?|[()[\]{}]/g;
const OPENERS: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };

/**
 * Returns a function that gives the offset of the first bracket in text at the cursor that closes none before it. It
 * reads the code above the cursor once, and tells nothing if that has such a bracket or ends in a string or comment.
 */
export function excessClosers(above: string): (written: string) => number | undefined {
  let known: readonly string[] | undefined | null = null;
  return (written) => {
    if (known === null) known = openAtEnd(above);
    return known && excessIn(written, [...known]);
  };
}

/** The brackets that are open at the end of a text. */
function openAtEnd(text: string): string[] | undefined {
  const open: string[] = [];
  if (excessIn(text, open) !== undefined) return undefined;
  const last = [...text.matchAll(TOKEN)].at(-1);
  const endsInside = last && last.index + last[0].length === text.length && /^["'#]/.test(last[0]);
  return endsInside && (last[2] ?? last[4]) === undefined ? undefined : open;
}

/** @param open the brackets that are open before the text; changed */
function excessIn(text: string, open: string[]): number | undefined {
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const opener = OPENERS[token];
    if (/^[([{]$/.test(token)) open.push(token);
    else if (opener !== undefined && open.pop() !== opener) return index;
  }
  return undefined;
}
