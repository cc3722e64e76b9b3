/**
 * The engines that are at work on this machine, one for each window of the editor that has a model loaded: they share one budget
 * (see memoryBudget.ts). Each has a file in a folder that all of them know, named after its process, and writes it anew
 * every BEAT_MS. One whose process has ended counts no more, and neither does one whose file is GONE_MS older than our own: the id of
 * its process may be another program's by now. There is no lock, and what goes wrong with the folder, a disk that is full say, is a line
 * in the log: as many count as before then, at first this one alone.
 */
import { randomBytes } from 'node:crypto';
import { readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { makeFolders } from '../kv/disk/makeFolders.ts';

/** Also without work: who waits for a window to give memory back does not know whether somebody uses it. */
export const BEAT_MS = 10_000;
export const GONE_MS = 60_000;
const NAME = /^([1-9]\d*)-[0-9a-f]{8}$/;

export class LiveEngines {
  /** This one included. */
  num = 1;
  readonly #folder: string;
  readonly #file: string;
  readonly #onChange: () => void;
  readonly #log: (line: string) => void;
  #timer: NodeJS.Timeout | undefined;
  /** A look that is under way. */
  #looking: Promise<void> | null = null;
  /** The log has been told that it does not work. */
  #failed = false;

  private constructor(folder: string, onChange: () => void, log: (line: string) => void) {
    this.#folder = folder;
    this.#file = path.join(folder, `${process.pid}-${randomBytes(4).toString('hex')}`);
    this.#onChange = onChange;
    this.#log = log;
  }

  /** Counts among those in the folder, which is made if missing, until `leave`. `onChange`: `num` is another one now. */
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

  /** The others have the budget to themselves. */
  async leave(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    // It may be about to write the file.
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
          `The other windows are not seen, and the cache's memory is divided among ${this.num} as before: ${(error as Error).message}`,
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
    // As the folder's clock has it, which may be another machine's, and which may have been set.
    const { mtimeMs: now } = await stat(this.#file);
    // The machine may have slept: then the others' files are as old as this one was.
    const times = [now, before?.mtimeMs ?? now];
    const others = (await readdir(this.#folder)).filter(
      (name) => NAME.test(name) && name !== path.basename(this.#file),
    );
    const live = await Promise.all(others.map((name) => this.#isLive(name, times)));
    return 1 + live.filter(Boolean).length;
  }

  /** `times`: when this one's file was written, at last and before. */
  async #isLive(name: string, times: readonly number[]): Promise<boolean> {
    const file = path.join(this.#folder, name);
    const info = await stat(file).catch(() => null);
    if (!info) return false;
    if (times.some((at) => Math.abs(at - info.mtimeMs) < GONE_MS)) return isRunning(Number(NAME.exec(name)![1]));
    // Not sooner: where a folder is several machines', the process may run on another one.
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
