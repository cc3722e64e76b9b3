/**
 * Counts the engines on this machine, one per editor window with a loaded model, because they share one memory budget
 * (see memoryBudget.ts). Each engine rewrites a file named after its process every BEAT_MS, without a lock. An engine
 * does not count if its process has ended, or if its file is GONE_MS older than our own (its process id may be reused).
 * Errors of the folder are logged, and the count stays as it was.
 */
import { randomBytes } from 'node:crypto';
import { readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { makeFolders } from '../kv/disk/makeFolders.ts';

/** Written also while idle, because an idle engine keeps its memory. */
export const BEAT_MS = 10_000;
export const GONE_MS = 60_000;
const NAME = /^([1-9]\d*)-[0-9a-f]{8}$/;

export class LiveEngines {
  /** Number of engines, this one included. */
  num = 1;
  readonly #folder: string;
  readonly #file: string;
  readonly #onChange: () => void;
  readonly #log: (line: string) => void;
  #timer: NodeJS.Timeout | undefined;
  /** A count under way. */
  #looking: Promise<void> | null = null;
  /** Whether the current error has been logged. */
  #failed = false;

  private constructor(folder: string, onChange: () => void, log: (line: string) => void) {
    this.#folder = folder;
    this.#file = path.join(folder, `${process.pid}-${randomBytes(4).toString('hex')}`);
    this.#onChange = onChange;
    this.#log = log;
  }

  /**
   * Joins the engines in the folder, until `leave`. Creates the folder. @param onChange called when `num` has changed
   */
  static async join(
    folder: string,
    onChange: () => void,
    log: (line: string) => void,
    beatMs = BEAT_MS,
  ): Promise<LiveEngines> {
    const engines = new LiveEngines(folder, onChange, log);
    engines.num = await engines.#look();
    engines.#timer = setInterval(() => engines.#beat(), beatMs);
    engines.#timer.unref();
    return engines;
  }

  /** Leaves, so that the others share the budget without this one. */
  async leave(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    // A count under way may write the file.
    await this.#looking;
    await rm(this.#file, { force: true }).catch(() => {});
  }

  #beat(): void {
    this.#looking ??= this.#look()
      .then((num) => {
        if (num === this.num || !this.#timer) return;
        this.num = num;
        this.#onChange();
      })
      .finally(() => {
        this.#looking = null;
      });
  }

  async #look(): Promise<number> {
    try {
      const num = await this.#count();
      this.#failed = false;
      return num;
    } catch (error) {
      if (!this.#failed)
        this.#log(
          `Other windows cannot be counted; the memory budget stays divided by ${this.num}: ${(error as Error).message}`,
        );
      this.#failed = true;
      return this.num;
    }
  }

  /** @throws an error of the file system. */
  async #count(): Promise<number> {
    await makeFolders(this.#folder, 0o700);
    const before = await stat(this.#file).catch(() => null);
    await writeFile(this.#file, `${process.pid}\n`, { mode: 0o600 });
    // The time by the clock of the file system, which may be on another machine or may have been changed.
    const { mtimeMs: now } = await stat(this.#file);
    // After sleep, the other files are as old as this one was before.
    const times = [now, before?.mtimeMs ?? now];
    const others = (await readdir(this.#folder)).filter(
      (name) => NAME.test(name) && name !== path.basename(this.#file),
    );
    const live = await Promise.all(others.map((name) => this.#isLive(name, times)));
    return 1 + live.filter(Boolean).length;
  }

  /** @param times when this engine's file was written, now and the time before, in ms */
  async #isLive(name: string, times: readonly number[]): Promise<boolean> {
    const file = path.join(this.#folder, name);
    const info = await stat(file).catch(() => null);
    if (!info) return false;
    if (times.some((at) => Math.abs(at - info.mtimeMs) < GONE_MS)) return isRunning(Number(NAME.exec(name)![1]));
    // Removed only when old: in a folder shared by machines, the process may run on another one.
    await rm(file, { force: true }).catch(() => {});
    return false;
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
