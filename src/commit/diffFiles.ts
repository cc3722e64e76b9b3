/** Splits a unified diff into its files. Pure. */

export interface DiffFile {
  /** Relative to the repository's root, after the change; for a deleted file, before it. */
  path: string;
  /** Every name of the file in the diff, including the one before a rename. */
  names: string[];
  text: string;
}

/** In the order of the diff, including merges in progress ("diff --cc"). */
export function diffFiles(diff: string): DiffFile[] {
  return (
    diff
      // Splits at LF only: file content may hold other characters that JavaScript counts as line ends.
      .split(/(?<=^|\n)(?=diff --)/)
      .filter((text) => text.startsWith('diff --'))
      .map((text) => {
        const names = namesIn(text);
        return { path: names[0] ?? '', names, text };
      })
  );
}

function namesIn(text: string): string[] {
  // After the first hunk header, lines are content.
  const head = text.slice(0, text.search(/\n@@/) >>> 0);
  const lines = ['rename to', 'copy to', '\\+\\+\\+', '---', 'rename from', 'copy from'].map(
    (word) => new RegExp(`^${word} (.+?)\\t?$`, 'm').exec(head)?.[1],
  );
  const named = lines
    .filter((name) => name !== undefined && name !== '/dev/null')
    .map((name) => withoutPrefix(unquoted(name as string)));
  return [...new Set([...named, ...namesInHeader(head)])];
}

/** "diff --git a/x b/x", used if nothing else names the file (mode change, binary). Both names are equal then. */
function namesInHeader(head: string): string[] {
  const header = /^diff --(?:git|cc|combined) (.+)$/m.exec(head)?.[1] ?? '';
  const twice = /^(?:[a-z]\/)?(.+) (?:[a-z]\/)?\1$/.exec(header)?.[1] ?? /^("?[a-z]\/.+) \1$/.exec(header)?.[1];
  const second = / ("[a-z]\/.+")$/.exec(header)?.[1];
  return [twice ?? withoutPrefix(unquoted(second ?? header))];
}

/** Git writes the prefixes a/ and b/; with diff.mnemonicPrefix also i/, w/, c/ and o/; or none. */
function withoutPrefix(name: string): string {
  return name.replace(/^[abciwo]\//, '');
}

/** Git quotes names with unusual characters as C strings. */
function unquoted(name: string): string {
  if (!name.startsWith('"') || !name.endsWith('"')) return name;
  const bytes: number[] = [];
  const inner = name.slice(1, -1);
  for (let i = 0; i < inner.length; i++) {
    const octal = /^\\([0-7]{3})/.exec(inner.slice(i, i + 4))?.[1];
    if (octal !== undefined) bytes.push(Number.parseInt(octal, 8));
    else if (inner[i] === '\\') bytes.push({ n: 10, t: 9 }[inner[i + 1] ?? ''] ?? (inner[i + 1] ?? '\\').charCodeAt(0));
    else bytes.push(...new TextEncoder().encode(inner[i]));
    if (inner[i] === '\\') i += octal === undefined ? 1 : 3;
  }
  return new TextDecoder().decode(Uint8Array.from(bytes));
}
