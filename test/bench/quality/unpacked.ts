/** Reads what the folders and the package.json of unpacked projects say, as the editor sends it with a request. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Source } from './sources.ts';

export class UnpackedProjects {
  readonly #folder: string;
  readonly #sources: readonly Source[];

  /** @param folder the one that `qualityTexts` has unpacked the sources into */
  constructor(folder: string, sources: readonly Source[]) {
    this.#folder = folder;
    this.#sources = sources;
  }

  /** The project's folder, and the paths of its files below it. */
  filesOf(source: string): [folder: string, files: string[]] {
    const { version } = this.#sources.find(({ name }) => name === source) as Source;
    const folder = path.join(this.#folder, `${source.replace('/', '-')}-${version}`);
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const files = entries.map(({ parentPath, name }) => path.relative(folder, path.join(parentPath, name)));
    return [folder, files.map((file) => file.replaceAll('\\', '/'))];
  }

  /** Packages that package.json names. */
  packagesOf(source: string): string[] {
    const [folder] = this.filesOf(source);
    const manifest = JSON.parse(readFileSync(path.join(folder, 'package/package.json'), 'utf8'));
    const lists = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies'];
    return [manifest.name, ...lists.flatMap((list) => Object.keys(manifest[list] ?? {}))];
  }

  /** What the folders of a project hold. */
  foldersOf(source: string): Record<string, string[]> {
    const folders = new Map<string, Set<string>>();
    for (const file of this.filesOf(source)[1]) {
      const parts = file.replace(/^package\//, '').split('/');
      for (const [i, part] of parts.entries()) {
        const folder = parts.slice(0, i).join('/');
        const names = folders.get(folder) ?? new Set();
        folders.set(folder, names.add(i < parts.length - 1 ? `${part}/` : part));
      }
    }
    return Object.fromEntries([...folders].map(([folder, names]) => [folder, [...names]]));
  }
}
