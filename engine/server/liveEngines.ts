/**
 * Counts the engines on this machine, one per editor window with a loaded model, because they share one memory budget.
 * Each engine rewrites a file with its process id every BEAT_MS. Does not divide the budget (see memoryBudget.ts).
 */
import { randomBytes } from 'node:crypto';
import { readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { makeFolders } from '../kv/disk/makeFolders.ts';

/** Time between two writes of the file. An idle engine writes, too, because it keeps its memory. */
export const BEAT_MS = 10_000;
/** An engine does not count if its file is so much older than our own, because its process id may be reused. */
export const MAX_BEAT_AGE_MS = 60_000;
const NAME = /^([1-9]\d*)-[0-9a-f]{8}$/;

export class LiveEngines {
  /** Number of engines, this one included. */
  num = 1;
  readonly #folder: string;
  readonly #file: string;
  readonly #onChange: () => void;
  readonly #log: (line: string) => void;
  #timer: NodeJS.Timeout | undefined;
  /** The count that runs. */
  #looking: Promise<void> | null = null;
  /** Whether the current error of the folder has been logged. After an error the count stays as it was. */
  #failed = false;

  private constructor(folder: string, onChange: () => void, log: (line: string) => void) {
    this.#folder = folder;
    this.#file = path.join(folder, `${process.pid}-${randomBytes(4).toString('hex')}`);
    this.#onChange = onChange;
    this.#log = log;
  }

  /**
   * Joins the engines in the folder until `leave`. Creates the folder.
   * @param onChange called when `num` has changed
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
    // A running count may write the file.
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

  /** @throws an error of the file system */
  async #count(): Promise<number> {
    await makeFolders(this.#folder, 0o700);
    const before = await stat(this.#file).catch(() => null);
    await writeFile(this.#file, `${process.pid}\n`, { mode: 0o600 });
    // Time by the clock of the file system, which may be on another machine.
    const { mtimeMs: now } = await stat(this.#file);
    // After sleep, the files of the others are as old as this file was before.
    const times = [now, before?.mtimeMs ?? now];
    const others = (await readdir(this.#folder)).filter(
      (name) => NAME.test(name) && name !== path.basename(this.#file),
    );
    const live = await Promise.all(others.map((name) => this.#isLive(name, times)));
    return 1 + live.filter(Boolean).length;
  }

  /** @param times of the last two writes of our own file, in ms */
  async #isLive(name: string, times: readonly number[]): Promise<boolean> {
    const file = path.join(this.#folder, name);
    const info = await stat(file).catch(() => null);
    if (!info) return false;
    if (times.some((at) => Math.abs(at - info.mtimeMs) < MAX_BEAT_AGE_MS))
      return isRunning(Number(NAME.exec(name)![1]));
    // Only an old file is removed, because other machines may share the folder, and the process may run there.
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
