/**
 * Finds closing brackets of new Python code that nothing opens. Reads strings and comments by their characters, because
 * a tree of unfinished Python code has errors anyway.
 */

const TOKEN = /#[^\n]*|("""|''')(?:\\[\s\S]|(?!\1)[\s\S])*(?:\1|$)|(["'])(?:\\[\s\S]|(?!\2)[^\\\n])*\2?|[()[\]{}]/g;
const OPENERS: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };

/**
 * The offset in `written` of the first bracket that closes none before it. Undefined if there is none, or if the code
 * above has one or ends inside a string.
 */
export function excessCloser(above: string, written: string): number | undefined {
  const open: string[] = [];
  for (const { 0: token, index } of (above + written).matchAll(TOKEN)) {
    const isAbove = index < above.length;
    if (isAbove && index + token.length > above.length) return undefined;
    const opener = OPENERS[token];
    if (/^[([{]$/.test(token)) open.push(token);
    else if (opener !== undefined && open.pop() !== opener) return isAbove ? undefined : index - above.length;
  }
  return undefined;
}
