/**
 * One owner of a file among the processes of this machine, by a lock file that holds a process id and is touched while
 * it is held. A lock is stale when its process has ended, or when MAX_QUIET_LOOKS in a row found it untouched: no
 * clocks are compared, so sleep and network disks do no harm.
 */
import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';

const BEAT_MS = 5_000;
const LOOK_MS = 300;
/** Half a minute. */
const MAX_QUIET_LOOKS = 100;
/** Looks in a row that find nothing to wait for, although the lock cannot be made. */
const MAX_VAIN_LOOKS = 20;
/** Only for what is shown: a lock of another machine that has not been touched for so long is held by nobody. */
const MAX_AGE_MS = 60_000;

export interface Held {
  /** False once another process has taken over. */
  isOurs(): boolean;
}

/** What the last look has found, and how many in a row have found the same. */
interface Seen {
  mark: string;
  mtime: number;
  looks: number;
}

/**
 * @param onWait called at each look while another process holds the lock
 * @throws the error of the file system when the lock cannot be made and nobody holds it; the signal's reason
 */
export async function withLock<T>(
  file: string,
  signal: AbortSignal,
  onWait: () => Promise<void> | void,
  run: (held: Held) => Promise<T>,
  lookMs = LOOK_MS,
): Promise<T> {
  const mark = `${process.pid} ${hostname()} ${randomBytes(8).toString('hex')}\n`;
  const seen: Seen = { mark: '', mtime: 0, looks: 0 };
  for (let vain = 0; ; ) {
    const refusal = await create(file, mark);
    if (!refusal) break;
    signal.throwIfAborted();
    const state = await look(file, seen);
    if (state === 'stale' && (await remove(file, seen.mark))) continue;
    vain = state === 'live' ? 0 : vain + 1;
    if (vain === MAX_VAIN_LOOKS) throw refusal;
    await onWait();
    await pause(lookMs, signal);
  }
  let ours = true;
  const beat = setInterval(() => {
    void (async () => {
      if ((await readFile(file, 'utf8').catch(() => null)) !== mark) ours = false;
      else await utimes(file, new Date(), new Date()).catch(() => {});
    })();
  }, BEAT_MS);
  beat.unref();
  try {
    return await run({ isOurs: () => ours });
  } finally {
    clearInterval(beat);
    await remove(file, mark);
  }
}

/** @returns null, or the error if there may be a lock already */
async function create(file: string, mark: string): Promise<Error | null> {
  try {
    // Others may read it, so that they see whether its process runs.
    const handle = await open(file, 'wx', 0o644);
    try {
      await handle.writeFile(mark);
    } catch (error) {
      await rm(file, { force: true }).catch(() => {});
      throw error;
    } finally {
      await handle.close().catch(() => {});
    }
    return null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Windows reports a file that is being removed so, and a folder that cannot be written.
    if (code === 'EEXIST' || (process.platform === 'win32' && code === 'EPERM')) return error as Error;
    throw error;
  }
}

async function look(file: string, seen: Seen): Promise<'live' | 'stale' | 'missing'> {
  const [mark, info] = await Promise.all([markOf(file), stat(file).catch(() => null)]);
  if (!info) return 'missing';
  if (mark !== seen.mark || info.mtimeMs !== seen.mtime) Object.assign(seen, { mark, mtime: info.mtimeMs, looks: 0 });
  const [pid, host] = mark.split(' ');
  if (host === hostname() && !isRunning(Number(pid))) return 'stale';
  seen.looks++;
  return seen.looks > MAX_QUIET_LOOKS ? 'stale' : 'live';
}

/** Whether a process of this machine holds the lock, or one of another machine may. */
export async function isHeld(file: string): Promise<boolean> {
  const [mark, info] = await Promise.all([markOf(file), stat(file).catch(() => null)]);
  if (!info) return false;
  const [pid, host] = mark.split(' ');
  return host === hostname() ? isRunning(Number(pid)) : Date.now() - info.mtimeMs < MAX_AGE_MS;
}

/** What the lock holds; "" if it is empty, cannot be read or does not exist. */
const markOf = (file: string): Promise<string> => readFile(file, 'utf8').catch(() => '');

/** Removes the lock if it still has this mark. @returns whether it is gone */
async function remove(file: string, mark: string): Promise<boolean> {
  const aside = `${file}.${randomBytes(4).toString('hex')}`;
  if ((await markOf(file)) !== mark) return false;
  const isAside = await rename(file, aside).then(
    () => true,
    () => false,
  );
  if (!isAside) return false;
  // Between the look and the renaming another process may have made a lock of its own.
  const taken = await markOf(aside);
  if (taken !== '' && taken !== mark) await create(file, taken).catch(() => {});
  await rm(aside, { force: true }).catch(() => {});
  return true;
}

function isRunning(pid: number): boolean {
  if (!(pid > 0)) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** @throws the signal's reason */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal.addEventListener('abort', stop, { once: true });
  });
}
