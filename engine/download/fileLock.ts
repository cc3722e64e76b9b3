/**
 * One owner of a file among the processes of this machine, by a lock file that holds a process id and is touched while
 * it is held. A lock is stale when its process has ended, or when it has not been touched for MAX_QUIET_MS of our own
 * waiting: no clocks are compared, so sleep and network disks do no harm.
 */
import { randomBytes } from 'node:crypto';
import { readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';

const BEAT_MS = 5_000;
const MAX_QUIET_MS = 30_000;
const LOOK_MS = 300;

export interface Held {
  /** False once another process has taken over. */
  isOurs(): boolean;
}

/** @param onWait called at each look while another process holds the lock */
export async function withLock<T>(
  file: string,
  signal: AbortSignal,
  onWait: () => Promise<void> | void,
  run: (held: Held) => Promise<T>,
): Promise<T> {
  const mark = `${process.pid} ${hostname()} ${randomBytes(8).toString('hex')}\n`;
  const seen = { mark: '', mtime: 0, since: performance.now() };
  while (!(await create(file, mark))) {
    signal.throwIfAborted();
    if (await isStale(file, seen)) await remove(file, seen.mark);
    else {
      await onWait();
      await pause(LOOK_MS, signal);
    }
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

async function create(file: string, mark: string): Promise<boolean> {
  try {
    await writeFile(file, mark, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Windows reports a file that is being removed so.
    if (code === 'EEXIST' || (process.platform === 'win32' && code === 'EPERM')) return false;
    throw error;
  }
}

async function isStale(file: string, seen: { mark: string; mtime: number; since: number }): Promise<boolean> {
  const [mark, info] = await Promise.all([readFile(file, 'utf8').catch(() => null), stat(file).catch(() => null)]);
  if (mark === null || !info) return false;
  if (mark !== seen.mark || info.mtimeMs !== seen.mtime)
    Object.assign(seen, { mark, mtime: info.mtimeMs, since: performance.now() });
  const [pid, host] = mark.split(' ');
  if (host === hostname() && !isRunning(Number(pid))) return true;
  return performance.now() - seen.since > MAX_QUIET_MS;
}

/** Whether a process of this machine holds the lock, or one of another machine may. */
export async function isHeld(file: string): Promise<boolean> {
  const mark = await readFile(file, 'utf8').catch(() => null);
  if (mark === null) return false;
  const [pid, host] = mark.split(' ');
  return host !== hostname() || isRunning(Number(pid));
}

/** Removes the lock if it still has this mark. */
async function remove(file: string, mark: string): Promise<void> {
  const aside = `${file}.${randomBytes(4).toString('hex')}`;
  if ((await readFile(file, 'utf8').catch(() => null)) !== mark) return;
  if (
    !(await rename(file, aside).then(
      () => true,
      () => false,
    ))
  )
    return;
  // Between the look and the renaming another process may have made a lock of its own.
  const taken = await readFile(aside, 'utf8').catch(() => mark);
  if (taken !== mark) await create(file, taken).catch(() => {});
  await rm(aside, { force: true });
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
