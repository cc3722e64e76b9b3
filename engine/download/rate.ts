/** The rate of a download over its last seconds, and the time that remains. */

const WINDOW_MS = 10_000;
const MIN_WINDOW_MS = 1000;

export class Rate {
  readonly #points: { at: number; bytes: number }[] = [];
  readonly #clock: () => number;

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock;
  }

  /** Bytes so far. Only what arrives counts: after a pause or a check begin with `reset`. */
  add(bytes: number): void {
    const at = this.#clock();
    this.#points.push({ at, bytes });
    while (this.#points.length > 2 && at - this.#points[1]!.at >= WINDOW_MS) this.#points.shift();
  }

  reset(): void {
    this.#points.length = 0;
  }

  /** Null until a second of the download has passed. */
  get bytesPerSecond(): number | null {
    const [first, last] = [this.#points[0], this.#points.at(-1)];
    if (!first || !last || last.at - first.at < MIN_WINDOW_MS) return null;
    return ((last.bytes - first.bytes) / (last.at - first.at)) * 1000;
  }

  /** Null if the rate is not known, or if nothing arrives. */
  secondsLeft(missingBytes: number): number | null {
    const rate = this.bytesPerSecond;
    return rate ? missingBytes / rate : null;
  }
}
