/**
 * The cache of the Hugging Face tools on this machine: where it is, and its layout of blobs, snapshots and refs. Does
 * not download.
 */
import {
  copyFile,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { homedir } from 'node:os';
import path from 'node:path';
import { isHeld } from './fileLock.ts';
import type { HubFile } from './hub.ts';

export interface Machine {
  env: Readonly<Record<string, string | undefined>>;
  home: string;
  platform: NodeJS.Platform;
}

export function thisMachine(): Machine {
  return { env: process.env, home: homedir(), platform: process.platform };
}

/** Where huggingface_hub keeps its files, by its own environment variables. */
export function hubFolder({ env, home }: Pick<Machine, 'env' | 'home'>): string {
  const given = env.HF_HUB_CACHE || env.HUGGINGFACE_HUB_CACHE;
  if (given) return expandHome(given, home);
  const root = env.HF_HOME || path.join(env.XDG_CACHE_HOME || path.join(home, '.cache'), 'huggingface');
  return path.join(expandHome(root, home), 'hub');
}

export function expandHome(folder: string, home: string): string {
  return folder === '~' || /^~[/\\]/.test(folder) ? path.join(home, folder.slice(1)) : folder;
}

/** The name of the folder of "owner/name". */
export const repositoryFolder = (repository: string): string => `models--${repository.replaceAll('/', '--')}`;

/** The files of one repository. */
export class CachedRepository {
  readonly folder: string;

  constructor(hub: string, repository: string) {
    this.folder = path.join(hub, repositoryFolder(repository));
  }

  get blobs(): string {
    return path.join(this.folder, 'blobs');
  }

  blob({ hash }: HubFile): string {
    return path.join(this.blobs, hash);
  }

  /** The part of a blob. Its name is our own: other tools would write to one of theirs at the same time. */
  part(file: HubFile): string {
    return `${this.blob(file)}.kvasir.incomplete`;
  }

  snapshot(commit: string): string {
    return path.join(this.folder, 'snapshots', commit);
  }

  async isWhole(file: HubFile): Promise<boolean> {
    const found = await stat(this.blob(file)).catch(() => null);
    return found?.isFile() === true && found.size === file.size;
  }

  /** Bytes of the file that are here. */
  async bytesHere(file: HubFile): Promise<number> {
    if (await this.isWhole(file)) return file.size;
    const part = await stat(this.part(file)).catch(() => null);
    return Math.min(part?.size ?? 0, file.size);
  }

  /** Bytes of files that are not whole. */
  async partBytes(): Promise<number> {
    let bytes = 0;
    for (const name of await this.#names(/\.kvasir\.incomplete$/))
      bytes += (await stat(path.join(this.blobs, name)).catch(() => null))?.size ?? 0;
    return bytes;
  }

  /** Whether a process is bringing a file. */
  async isBusy(): Promise<boolean> {
    for (const name of await this.#names(/\.kvasir\.lock$/)) if (await isHeld(path.join(this.blobs, name))) return true;
    return false;
  }

  async #names(pattern: RegExp): Promise<string[]> {
    return (await readdir(this.blobs).catch(() => [])).filter((name) => pattern.test(name));
  }

  /** Removes the parts of files that are not whole, so that their space is free. */
  async discardParts(): Promise<void> {
    for (const name of await this.#names(/\.kvasir\.(incomplete|etag)$/))
      await rm(path.join(this.blobs, name), { force: true });
  }

  /** Puts whole blobs under their names into the snapshot, and lets `revision` name it. */
  async publish(commit: string, revision: string, files: readonly HubFile[]): Promise<void> {
    for (const file of files) {
      const name = path.join(this.snapshot(commit), ...file.path.split('/'));
      await mkdir(path.dirname(name), { recursive: true });
      await place(this.blob(file), name);
    }
    if (revision === commit) return;
    const ref = path.join(this.folder, 'refs', ...revision.split('/'));
    if ((await readFile(ref, 'utf8').catch(() => '')) === commit) return;
    await mkdir(path.dirname(ref), { recursive: true });
    const fresh = `${ref}.${randomBytes(4).toString('hex')}`;
    await writeFile(fresh, commit);
    await rename(fresh, ref);
  }
}

/** A link to the blob: symbolic as other tools make it, else hard, else a copy. */
async function place(blob: string, name: string): Promise<void> {
  const fresh = `${name}.${randomBytes(4).toString('hex')}`;
  const target = path.relative(path.dirname(name), blob);
  await symlink(target, fresh)
    .catch(() => link(blob, fresh))
    .catch(() => copyFile(blob, fresh));
  try {
    await rename(fresh, name);
  } catch (error) {
    await rm(fresh, { force: true });
    // Windows does not replace a file that is in use; it is the same one then.
    if (!(await lstat(name).catch(() => null))) throw error;
  }
}
