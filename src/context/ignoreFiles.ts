/** What a folder's .gitignore files leave out, as git reads them. Pure. */
import ignore, { type Ignore } from 'ignore';

export class IgnoreFiles {
  /** The folder that each is in with a slash behind it (empty at the top), outermost first. */
  readonly #files: { folder: string; rules: Ignore }[];

  /** Texts by the path of their folder, relative to the top, which is empty. */
  constructor(texts: ReadonlyMap<string, string>) {
    this.#files = [...texts]
      .map(([path, text]) => ({ folder: path === '' ? '' : `${path}/`, rules: ignore().add(text) }))
      .sort((a, b) => a.folder.length - b.folder.length);
  }

  /** `path` is a file's, relative to the top, with forward slashes. */
  ignores(path: string): boolean {
    // From the top down: what lies in an ignored folder stays ignored, whatever a .gitignore in there says.
    for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1))
      if (this.#verdict(path.slice(0, slash + 1))) return true;
    return this.#verdict(path);
  }

  /** The deepest file that says anything has the last word. */
  #verdict(path: string): boolean {
    let verdict = false;
    for (const { folder, rules } of this.#files) {
      if (!path.startsWith(folder) || path === folder) continue;
      const { ignored, unignored } = rules.test(path.slice(folder.length));
      if (ignored || unignored) verdict = ignored;
    }
    return verdict;
  }
}
