/**
 * Reads memory as fast as WebAssembly can. A module has one function that adds up 128-bit words. Each thread scans its
 * part of one shared memory. Owns the module's bytes and the synchronization of the threads.
 */
import { Worker } from 'node:worker_threads';

/** Number of words that one iteration of the loop reads. A scan covers a multiple of TURN_BYTES. */
const UNROLLED = 16;
export const TURN_BYTES = 16 * UNROLLED;
const ACCUMULATORS = 4;
const PAGE = 65_536;
/**
 * Indices of the control words: the number of the requested scan, and the number of threads that have not finished it.
 */
const ASKED = 0;
const LEFT = 1;

/** Unsigned LEB128. */
function leb(value: number): number[] {
  return value > 0x7f ? [(value & 0x7f) | 0x80, ...leb(value >>> 7)] : [value];
}

/** Signed LEB128. */
function signedLeb(value: number): number[] {
  const bytes: number[] = [];
  for (;;) {
    const byte = value & 0x7f;
    value >>= 7;
    if ((value === 0 && !(byte & 0x40)) || (value === -1 && byte & 0x40)) return [...bytes, byte];
    bytes.push(byte | 0x80);
  }
}

const section = (id: number, content: number[]): number[] => [id, ...leb(content.length), ...content];
const name = (text: string): number[] => [text.length, ...new TextEncoder().encode(text)];

/**
 * `scan(from: i32, to: i32): i64`, the sum of all 64-bit words in the range of an imported shared memory of `pages`
 * pages.
 */
export function scanModule(pages: number): Uint8Array<ArrayBuffer> {
  const [I32, I64, V128] = [0x7f, 0x7e, 0x7b];
  const get = (local: number): number[] => [0x20, local];
  const set = (local: number): number[] => [0x21, local];
  const simd = (op: number, ...rest: number[]): number[] => [0xfd, ...leb(op), ...rest];
  const [LOAD, ADD, EXTRACT] = [0x00, 0xce, 0x1d];
  const accumulator = (i: number): number => 2 + (i % ACCUMULATORS);
  const read = Array.from({ length: UNROLLED }, (_, i) => [
    ...get(accumulator(i)),
    ...get(0),
    ...simd(LOAD, 4, ...leb(16 * i)),
    ...simd(ADD),
    ...set(accumulator(i)),
  ]).flat();
  // do { read; from += TURN_BYTES } while (from < to)
  const loop = [
    0x03,
    0x40,
    ...read,
    ...get(0),
    0x41,
    ...signedLeb(TURN_BYTES),
    0x6a,
    0x22,
    0,
    ...get(1),
    0x49,
    0x0d,
    0,
    0x0b,
  ];
  const lanes = Array.from({ length: ACCUMULATORS }, (_, i) =>
    [0, 1].flatMap((lane) => [...get(accumulator(i)), ...simd(EXTRACT, lane), ...(i + lane > 0 ? [0x7c] : [])]),
  ).flat();
  const body = [1, ACCUMULATORS, V128, ...loop, ...lanes, 0x0b];
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 2, I32, I32, 1, I64]),
    ...section(2, [1, ...name('e'), ...name('m'), 2, 3, ...leb(pages), ...leb(pages)]),
    ...section(3, [1, 0]),
    ...section(7, [1, ...name('scan'), 0, 0]),
    ...section(10, [1, ...leb(body.length), ...body]),
  ]);
}

/** Code of a thread. It waits for each scan, scans its part and stores its sum. */
const THREAD = `
const { workerData: { module, memory, control, sums, from, to, index } } = require('node:worker_threads');
const { exports } = new WebAssembly.Instance(module, { e: { m: memory } });
for (let done = 0; ; ) {
  Atomics.wait(control, ${ASKED}, done);
  done = Atomics.load(control, ${ASKED});
  if (done < 0) break;
  sums[index] = exports.scan(from, to);
  if (Atomics.sub(control, ${LEFT}, 1) === 1) Atomics.notify(control, ${LEFT});
}`;

export class WasmScan {
  readonly bytes: number;
  readonly #workers: Worker[];
  readonly #control = new Int32Array(new SharedArrayBuffer(8));
  readonly #sums: BigInt64Array;

  /** @param bytes is rounded up so that all threads have equal parts. */
  constructor(bytes: number, threads: number) {
    const part = Math.ceil(bytes / threads / PAGE) * PAGE;
    this.bytes = part * threads;
    const pages = this.bytes / PAGE;
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    // Untouched memory would be a single page of zeros that is mapped everywhere.
    new Uint8Array(memory.buffer).fill(1);
    this.#sums = new BigInt64Array(new SharedArrayBuffer(8 * threads));
    const module = new WebAssembly.Module(scanModule(pages));
    this.#workers = Array.from(
      { length: threads },
      (_, index) =>
        new Worker(THREAD, {
          eval: true,
          workerData: {
            module,
            memory,
            control: this.#control,
            sums: this.#sums,
            index,
            from: index * part,
            to: (index + 1) * part,
          },
        }),
    );
  }

  /** Waits until every thread has started, so that the first scan does not measure the start. */
  async ready(): Promise<void> {
    await Promise.all(
      this.#workers.map(
        (worker) => new Promise<void>((resolve, reject) => worker.once('online', resolve).once('error', reject)),
      ),
    );
    this.scan();
  }

  /**
   * Reads everything once.
   * @returns the sum of the 64-bit words in 64 bits. It is the same each time.
   */
  scan(): bigint {
    Atomics.store(this.#control, LEFT, this.#workers.length);
    Atomics.add(this.#control, ASKED, 1);
    Atomics.notify(this.#control, ASKED);
    for (let left = Atomics.load(this.#control, LEFT); left > 0; left = Atomics.load(this.#control, LEFT))
      Atomics.wait(this.#control, LEFT, left);
    return this.#sums.reduce((a, b) => BigInt.asIntN(64, a + b), 0n);
  }

  async close(): Promise<void> {
    Atomics.store(this.#control, ASKED, -1);
    Atomics.notify(this.#control, ASKED);
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}
