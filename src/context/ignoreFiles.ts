/** Which files a folder's .gitignore files exclude, following git's rules. Pure. */
import ignore, { type Ignore } from 'ignore';

export class IgnoreFiles {
  /** The folder of each file with a trailing slash (empty at the top), outermost first. */
  readonly #files: { folder: string; rules: Ignore }[];

  /** Texts by the path of their folder relative to the top, which is empty. */
  constructor(texts: ReadonlyMap<string, string>) {
    this.#files = [...texts]
      .map(([path, text]) => ({ folder: path === '' ? '' : `${path}/`, rules: ignore().add(text) }))
      .sort((a, b) => a.folder.length - b.folder.length);
  }

  /** `path` is a file's, relative to the top, with forward slashes. */
  ignores(path: string): boolean {
    // From the top down: files in an ignored folder stay ignored, whatever a .gitignore inside says.
    for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1))
      if (this.#verdict(path.slice(0, slash + 1))) return true;
    return this.#verdict(path);
  }

  /** The deepest file with a matching pattern decides. */
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
