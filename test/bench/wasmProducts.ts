/**
 * Computes the products of the linear layers outside the runtime: WebAssembly with 128-bit integer products, and two
 * threads over one shared memory. Shows how much such a lane could gain for a token. Codes have 7 bits, which these
 * products compute exactly on every CPU. Owns the kernel and the synchronization of the threads.
 */
import { Worker } from 'node:worker_threads';
import asc from 'assemblyscript/asc';

const PAGE = 65_536;
/** Number of outputs that are computed together, and number of inputs in a word. */
const TOGETHER = 4;
const WORD = 16;
export const ROWS = [1, 4] as const;

/**
 * One function for each number of rows. Weights are int8 [outputs / 4, width / 16, 4, 16], codes are [rows, width],
 * sums are int32 [rows, outputs].
 */
function kernel(): string {
  const functions = ROWS.map((rows) => {
    const each = (write: (row: number, column: number) => string): string =>
      Array.from({ length: rows * TOGETHER }, (_, i) => write(Math.floor(i / TOGETHER), i % TOGETHER)).join('');
    const lanes = [0, 1, 2, 3];
    return `export function products${rows}(w: usize, x: usize, out: usize, width: i32, outputs: i32, from: i32, to: i32): void {
  for (let n = from; n < to; n += ${TOGETHER}) {
    let p = w + <usize>n * width;
    ${each((r, c) => `let s${r}_${c} = i32x4.splat(0);`)}
    for (let k = 0; k < width; k += ${WORD}) {
      ${Array.from({ length: rows }, (_, r) => `const x${r} = v128.load(x + <usize>(${r} * width + k));`).join('')}
      ${lanes.map((c) => `const w${c} = v128.load(p, ${WORD * c});`).join('')}
      ${each((r, c) => `s${r}_${c} = i32x4.relaxed_dot_i8x16_i7x16_add_s(w${c}, x${r}, s${r}_${c});`)}
      p += ${WORD * TOGETHER};
    }
    ${each((r, c) => `store<i32>(out + <usize>(4 * (${r} * outputs + n + ${c})), ${lanes.map((lane) => `i32x4.extract_lane(s${r}_${c}, ${lane})`).join(' + ')});`)}
  }
}`;
  });
  return functions.join('\n');
}

async function compiled(pages: number): Promise<WebAssembly.Module> {
  let binary: Uint8Array<ArrayBuffer> | null = null;
  const options = [
    'kernel.ts',
    '--outFile',
    'kernel.wasm',
    '--runtime',
    'stub',
    '--enable',
    'simd',
    '--enable',
    'relaxed-simd',
    '--enable',
    'threads',
    '--importMemory',
    '--sharedMemory',
    '--initialMemory',
    String(pages),
    '--maximumMemory',
    String(pages),
    '-O3',
    '--noAssert',
  ];
  const { error, stderr } = await asc.main(options, {
    readFile: (name) => (name === 'kernel.ts' ? kernel() : null),
    writeFile: (_name, contents) => {
      binary = contents as Uint8Array<ArrayBuffer>;
    },
    listFiles: () => [],
  });
  if (error || !binary) throw new Error(`the kernel cannot be compiled: ${error?.message}\n${stderr}`);
  return new WebAssembly.Module(binary);
}

type Kernel = Record<
  string,
  (w: number, x: number, out: number, width: number, outputs: number, from: number, to: number) => void
>;
/** Indices of the control words: number of the requested run, number of unfinished parts, rows. */
const [ASKED, LEFT, WITH_ROWS] = [0, 1, 2];

/**
 * Computes the second half of all outputs in its own thread. The thread spins between layers, as the runtime's threads
 * do.
 */
const THREAD = `
const { workerData: { module, memory, control, layers, x, out } } = require('node:worker_threads');
const { exports } = new WebAssembly.Instance(module, { env: { memory } });
for (let done = 0; ; ) {
  Atomics.wait(control, ${ASKED}, done);
  done = Atomics.load(control, ${ASKED});
  if (done < 0) break;
  for (const [i, { at, width, outputs }] of layers.entries()) {
    exports['products' + control[${WITH_ROWS}]](at, x, out, width, outputs, outputs / 2, outputs);
    Atomics.sub(control, ${LEFT}, 1);
    // Behind the last one there is nothing to wait for, and the next run may have begun.
    while (i < layers.length - 1 && Atomics.load(control, ${LEFT}) > 2 * (layers.length - i - 1));
  }
}`;

export class WasmProducts {
  readonly #layers: { at: number; width: number; outputs: number }[] = [];
  readonly #memory: WebAssembly.Memory;
  readonly #kernel: Kernel;
  readonly #worker: Worker;
  readonly #control = new Int32Array(new SharedArrayBuffer(12));
  readonly #x: number;
  readonly #out: number;

  private constructor(
    module: WebAssembly.Module,
    memory: WebAssembly.Memory,
    layers: { at: number; width: number; outputs: number }[],
    x: number,
    out: number,
  ) {
    this.#layers = layers;
    this.#memory = memory;
    this.#kernel = new WebAssembly.Instance(module, { env: { memory } }).exports as Kernel;
    this.#x = x;
    this.#out = out;
    this.#worker = new Worker(THREAD, {
      eval: true,
      workerData: { module, memory, control: this.#control, layers, x, out },
    });
  }

  /**
   * @param shapes width and number of outputs of each layer, in order. Outputs are multiples of eight, widths multiples
   * of sixteen.
   */
  static async open(
    shapes: readonly (readonly [width: number, outputs: number])[],
    bytes: (count: number) => Uint8Array,
  ): Promise<WasmProducts> {
    const most = Math.max(...shapes.flat());
    const x = PAGE;
    const out = x + ROWS[1] * most;
    let end = Math.ceil((out + 4 * ROWS[1] * most) / PAGE) * PAGE;
    const layers = shapes.map(([width, outputs]) => {
      const at = end;
      end += width * outputs;
      return { at, width, outputs };
    });
    const pages = Math.ceil(end / PAGE);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const all = new Uint8Array(memory.buffer);
    for (const { at, width, outputs } of layers) all.set(bytes(width * outputs), at);
    for (let i = 0; i < ROWS[1] * most; i++) all[x + i] = (37 * i) % 127;
    const opened = new WasmProducts(await compiled(pages), memory, layers, x, out);
    await new Promise<void>((resolve, reject) => opened.#worker.once('online', resolve).once('error', reject));
    return opened;
  }

  /**
   * Runs all layers once. Both threads finish a layer before the next layer begins, because its input would come from
   * the other thread's output.
   */
  run(rows: number): void {
    const control = this.#control;
    control[WITH_ROWS] = rows;
    Atomics.store(control, LEFT, 2 * this.#layers.length);
    Atomics.add(control, ASKED, 1);
    Atomics.notify(control, ASKED);
    for (const [i, { at, width, outputs }] of this.#layers.entries()) {
      this.#kernel[`products${rows}`]!(at, this.#x, this.#out, width, outputs, 0, outputs / 2);
      Atomics.sub(control, LEFT, 1);
      while (Atomics.load(control, LEFT) > 2 * (this.#layers.length - i - 1));
    }
  }

  /** Sums of the last layer, int32 [rows, outputs]. */
  get sums(): Int32Array {
    return new Int32Array(this.#memory.buffer, this.#out);
  }

  async close(): Promise<void> {
    Atomics.store(this.#control, ASKED, -1);
    Atomics.notify(this.#control, ASKED);
    await this.#worker.terminate();
  }
}
