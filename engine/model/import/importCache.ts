/**
 * The cache folder of imported models: one folder per key, complete or absent. Builds an entry in a temporary folder
 * and renames it, so that a crash or a second process breaks nothing. Does not know what the files are.
 */
import { t } from '@vscode/l10n';
import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, readdir, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { RequestError, reasonOf } from '../../protocol/errors.ts';
import { makeFolders } from '../../kv/disk/makeFolders.ts';
import { isMissing } from '../load/modelFolder.ts';

const MANIFEST = 'manifest.json';
const TEMPORARY = /^\.import-(\d+)-[0-9a-f]+$/;
/** Empty file that marks a process as a user of the entry. A later user removes it when that process has ended. */
const USER = /^used-by-(\d+)$/;
/** Age at which a temporary folder of an ended process is removed. Another machine may share the cache folder. */
const MAX_TEMPORARY_AGE_MS = 10 * 60_000;

interface Manifest<T> {
  readonly sizes: Readonly<Record<string, number>>;
  readonly value: T;
}

/** Error for a problem with the cache folder. `bytes`: size of the entry. */
function diskError(cacheDir: string, error: unknown, bytes?: number): RequestError {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  const full = code === 'ENOSPC' || code === 'EDQUOT';
  const failed = (message: string) => new RequestError('engineFailed', message);
  // Node has these codes if a file is in the place of the folder or of a folder above it.
  if (code === 'EEXIST' || code === 'ENOTDIR')
    return failed(t('The cache folder {0} is a file or is inside one.', cacheDir));
  if (!full) return failed(t('The cache folder {0} cannot be written: {1}.', cacheDir, reasonOf(error)));
  if (bytes === undefined) return failed(t('The disk with the cache folder {0} is full. Free some space.', cacheDir));
  return failed(
    t(
      'The disk with the cache folder {0} is full. This model needs {1} MB there. Free some space.',
      cacheDir,
      Math.ceil(bytes / 1e6),
    ),
  );
}

/** The value of an entry if it exists and every file has its recorded size. */
async function readEntry<T>(dir: string): Promise<T | null> {
  try {
    const manifest = JSON.parse(await readFile(path.join(dir, MANIFEST), 'utf8')) as Manifest<T>;
    for (const [name, size] of Object.entries(manifest.sizes))
      if ((await stat(path.join(dir, name))).size !== size) return null;
    return manifest.value ?? null;
  } catch {
    return null;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

async function removeStale(cacheDir: string): Promise<void> {
  for (const name of await readdir(cacheDir).catch(() => [])) {
    const pid = Number(TEMPORARY.exec(name)?.[1]);
    if (!pid || isAlive(pid)) continue;
    const info = await stat(path.join(cacheDir, name)).catch(() => null);
    if (info && Date.now() - info.mtimeMs > MAX_TEMPORARY_AGE_MS)
      await rm(path.join(cacheDir, name), { recursive: true, force: true }).catch(() => {});
  }
}

function temporary(cacheDir: string): string {
  return path.join(cacheDir, `.import-${process.pid}-${randomBytes(6).toString('hex')}`);
}

/** Ids of the processes that have marked the entry. */
async function usersOf(dir: string): Promise<number[]> {
  return (await readdir(dir).catch(() => [])).map((file) => Number(USER.exec(file)?.[1])).filter((pid) => pid > 0);
}

/** Marks an entry as used and removes the marks of ended processes. An entry that cannot be marked works as well. */
async function markUsed(dir: string): Promise<void> {
  const mark = (pid: number): string => path.join(dir, `used-by-${pid}`);
  await writeFile(mark(process.pid), '').catch(() => {});
  for (const pid of await usersOf(dir)) if (!isAlive(pid)) await rm(mark(pid), { force: true }).catch(() => {});
}

/**
 * Removes the entries whose recorded value is `outdated`, except `key` and those that another live process has opened.
 * This process must not use them any more. Entries that cannot be removed stay. An entry is renamed first, so that it
 * stays complete on Windows, where files in use cannot be removed.
 */
export async function removeEntries(
  cacheDir: string,
  key: string,
  outdated: (value: Record<string, unknown>) => boolean,
): Promise<void> {
  for (const name of await readdir(cacheDir).catch(() => [])) {
    const dir = path.join(cacheDir, name);
    if (name === key || name.startsWith('.')) continue;
    const value = await readEntry<Record<string, unknown>>(dir);
    if (value === null || !outdated(value)) continue;
    if ((await usersOf(dir)).some((pid) => pid !== process.pid && isAlive(pid))) continue;
    const removed = temporary(cacheDir);
    await rename(dir, removed)
      .then(() => rm(removed, { recursive: true, force: true }))
      .catch(() => {});
  }
}

/** Records another value of a complete entry, if that is possible. */
export async function updateEntry<T>(dir: string, value: T): Promise<void> {
  const temporary = path.join(dir, `${MANIFEST}.${randomBytes(4).toString('hex')}`);
  try {
    const { sizes } = JSON.parse(await readFile(path.join(dir, MANIFEST), 'utf8')) as Manifest<T>;
    await writeFile(temporary, manifestText({ sizes, value }));
    await rename(temporary, path.join(dir, MANIFEST));
  } catch {
    await rm(temporary, { force: true }).catch(() => {});
  }
}

function manifestText<T>(manifest: Manifest<T>): string {
  return `${JSON.stringify(manifest, null, 1)}\n`;
}

async function sync(file: string): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export interface Recipe<T> {
  /** Expected size of the entry. */
  readonly bytes: number;
  /** Fills the folder and returns the value that the manifest of the entry records as JSON. */
  readonly build: (dir: string) => Promise<T>;
}

export interface Entry<T> {
  readonly dir: string;
  readonly value: T;
  /** Whether it was already there. */
  readonly reused: boolean;
}

/**
 * The complete entry of `key`. Builds it if it is missing or if a file does not have its recorded size. `prepare` is
 * called only then. Its `bytes` are for the check of free space.
 */
export async function cacheEntry<T>(
  cacheDir: string,
  key: string,
  prepare: () => Promise<Recipe<T>>,
): Promise<Entry<T>> {
  const dir = path.join(cacheDir, key);
  const found = await readEntry<T>(dir);
  if (found) {
    await markUsed(dir);
    return { dir, value: found, reused: true };
  }
  const { bytes, build } = await prepare();
  const scratch = temporary(cacheDir);
  try {
    await makeFolders(cacheDir);
    await removeStale(cacheDir);
    const space = await statfs(cacheDir).catch(() => null);
    // A file system without a size (Linux /sys) reports no free space.
    if (space && space.blocks > 0 && space.bavail * space.bsize < bytes)
      throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    await mkdir(scratch);
    const value = await build(scratch);
    const sizes: Record<string, number> = {};
    for (const name of await readdir(scratch)) {
      await sync(path.join(scratch, name));
      sizes[name] = (await stat(path.join(scratch, name))).size;
    }
    await markUsed(scratch);
    const text = manifestText({ sizes, value });
    const handle = await open(path.join(scratch, MANIFEST), 'wx');
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    for (let attempt = 0; ; attempt++) {
      try {
        await rename(scratch, dir);
        return { dir, value, reused: false };
      } catch (error) {
        // Either another process was first, and its entry is used. Or a broken entry is in the way: it is moved away,
        // and the rename is tried again.
        const other = await readEntry<T>(dir);
        if (other) {
          await markUsed(dir);
          return { dir, value: other, reused: true };
        }
        if (attempt === 3) throw error;
        const removed = temporary(cacheDir);
        await rename(dir, removed).catch((e: unknown) => {
          if (!isMissing(e)) throw e;
        });
        await rm(removed, { recursive: true, force: true });
      }
    }
  } catch (error) {
    throw error instanceof RequestError || (error as NodeJS.ErrnoException | null)?.code === undefined
      ? error
      : diskError(cacheDir, error, bytes);
  } finally {
    await rm(scratch, { recursive: true, force: true }).catch(() => {});
  }
}
