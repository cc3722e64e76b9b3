/** Scores how well a path matches what was typed. Pure. */

/** 0 is no match. The name counts more than its folders, consecutive letters more than scattered ones. */
export function rank(query: string, path: string): number {
  const wanted = query.toLowerCase();
  const whole = path.toLowerCase();
  const name = whole.slice(whole.lastIndexOf('/') + 1);
  if (name === wanted) return 100;
  if (name.startsWith(wanted)) return 80;
  if (name.includes(wanted)) return 60;
  if (whole.includes(wanted)) return 40;
  if (isSubsequence(wanted, name)) return 20;
  return isSubsequence(wanted, whole) ? 10 : 0;
}

function isSubsequence(wanted: string, text: string): boolean {
  let at = 0;
  for (const letter of wanted) {
    at = text.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return true;
}
