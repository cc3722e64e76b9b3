/** What a .gitignore leaves out. Pure; the common part of its language: comments, `!`, folders, anchors, `*`, `**`, `?`, `[...]`. */

interface Rule {
  pattern: RegExp;
  negated: boolean;
  foldersOnly: boolean;
}

export class IgnoreFile {
  readonly #rules: Rule[];

  constructor(text: string) {
    this.#rules = text.split(/\r?\n/).flatMap(ruleOf);
  }

  /** `path` is relative to the file's folder, with forward slashes. Undefined where no rule says anything. */
  ignores(path: string): boolean | undefined {
    const parts = path.split('/');
    let verdict: boolean | undefined;
    // What lies in an ignored folder stays ignored.
    for (let length = 1; length <= parts.length; length++) {
      const name = parts.slice(0, length).join('/');
      for (const { pattern, negated, foldersOnly } of this.#rules) if (pattern.test(name) && (length < parts.length || !foldersOnly)) verdict = !negated;
      if (verdict && length < parts.length) return true;
    }
    return verdict;
  }
}

function ruleOf(line: string): Rule[] {
  const text = line.replace(/(?<!\\)\s+$/, '');
  if (text === '' || text.startsWith('#')) return [];
  const negated = text.startsWith('!');
  const body = (negated ? text.slice(1) : text).replace(/^\\(?=[#!])/, '');
  const foldersOnly = body.endsWith('/');
  const path = body.replace(/\/$/, '');
  // A slash before the end ties the pattern to the file's own folder.
  const anchored = path.includes('/');
  const source = globSource(path.replace(/^\//, ''));
  try {
    return [{ pattern: new RegExp(`^${anchored ? '' : '(?:.*/)?'}${source}$`), negated, foldersOnly }];
  } catch {
    // Git, too, passes over what is no pattern.
    return [];
  }
}

function globSource(glob: string): string {
  const piece = /\*\*\/|\/\*\*$|\*+|\?|\[[^\]]+\]|\\.|./gs;
  return glob.replace(piece, (part) => {
    if (part === '**/') return '(?:.*/)?';
    if (part === '/**') return '/.*';
    if (part.startsWith('*')) return '[^/]*';
    if (part === '?') return '[^/]';
    if (part.length > 2 && part.startsWith('[')) return part.replace(/^\[!/, '[^');
    return (part.length === 2 && part.startsWith('\\') ? part.slice(1) : part).replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
  });
}
