/**
 * Measures how fast this machine reads memory. Several ways read a buffer of eight times the last-level cache once,
 * with as many threads as the engine has. The best result is the reference for a step that reads all weights once.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type * as Ort from 'onnxruntime-node';
import { OnnxWriter } from '../../engine/model/graph/onnxWriter.ts';
import { median } from './spread.ts';
import { TURN_BYTES, WasmScan } from './wasmScan.ts';

const CACHES = '/sys/devices/system/cpu/cpu0/cache';
/** Used where the system does not report the cache size. */
const USUAL_CACHE_BYTES = 32 * 2 ** 20;
/** Inner dimension of the products, and number of elements in a reduced row. */
const WIDTH = 4096;

/** Parses sizes such as "32768K" and "1M". */
export function parseSize(text: string): number {
  const [, number, unit] = /^(\d+)([KMG]?)$/.exec(text.trim()) ?? [];
  return Number(number) * 2 ** ({ K: 10, M: 20, G: 30 }[unit ?? ''] ?? 0);
}

export function lastLevelCacheBytes(): number {
  try {
    const sizes = readdirSync(CACHES)
      .filter((name) => name.startsWith('index'))
      .map((name) => parseSize(readFileSync(path.join(CACHES, name, 'size'), 'utf8')));
    return Math.max(...sizes.filter((size) => size > 0)) || USUAL_CACHE_BYTES;
  } catch {
    return USUAL_CACHE_BYTES;
  }
}

export interface Scan {
  /** Name of the way to read. */
  name: string;
  bytes: number;
  scan(): Promise<void>;
  close(): Promise<void>;
}

const SCANS = 5;

/** Median speed of a few scans. */
export async function gigabytesPerSecond({ bytes, scan }: Scan): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < SCANS; i++) {
    const start = performance.now();
    await scan();
    times.push(performance.now() - start);
  }
  return bytes / median(times) / 1e6;
}

const roundedUp = (bytes: number): number => Math.ceil(bytes / WIDTH / TURN_BYTES) * WIDTH * TURN_BYTES;

/**
 * Most bytes that the runtime reads. The limit exists because the runtime keeps a matrix twice. It is large because the
 * caches of a server's CPU, which all virtual machines on it share, hold hundreds of megabytes.
 */
const MAX_OF_RUNTIME = 2 ** 30;

/** @param dir keeps a file of about `bytes` bytes, but at most MAX_OF_RUNTIME. */
export async function openScans(bytes: number, threads: number, dir: string): Promise<Scan[]> {
  const ofRuntime = roundedUp(Math.min(bytes, MAX_OF_RUNTIME));
  const ort = await import('onnxruntime-node');
  return [
    await openWasmScan(roundedUp(bytes), threads),
    await reduceMax(ort, ofRuntime, threads),
    await integerProduct(ort, ofRuntime, threads, dir),
  ];
}

/**
 * Reads without the runtime.
 * @param bytes bytes read at a time. The real number may be a little larger.
 */
export async function openWasmScan(bytes: number, threads: number): Promise<Scan> {
  const scan = new WasmScan(roundedUp(bytes), threads);
  await scan.ready();
  return {
    name: 'WebAssembly, 128-bit loads',
    bytes: scan.bytes,
    scan: async () => void scan.scan(),
    close: () => scan.close(),
  };
}

function session(ort: typeof Ort, graph: Uint8Array | string, threads: number): Promise<Ort.InferenceSession> {
  const options = {
    intraOpNumThreads: threads,
    logSeverityLevel: 3,
    extra: { session: { intra_op: { allow_spinning: '0' } } },
  } as const;
  return typeof graph === 'string'
    ? ort.InferenceSession.create(graph, options)
    : ort.InferenceSession.create(graph, options);
}

/** Computes the largest value of each row of a float32 matrix. */
async function reduceMax(ort: typeof Ort, bytes: number, threads: number): Promise<Scan> {
  const rows = bytes / WIDTH / 4;
  const g = new OnnxWriter();
  g.input('x', 'float32', [rows, WIDTH]);
  g.node('ReduceMax', ['x', g.ints(1)], ['y'], { keepdims: 0 });
  g.output('y', 'float32', [rows]);
  const reducing = await session(ort, g.finish(), threads);
  const feeds = { x: new ort.Tensor('float32', new Float32Array(rows * WIDTH).fill(1), [rows, WIDTH]) };
  return {
    name: 'onnxruntime, ReduceMax over float32',
    bytes,
    scan: async () => void (await reducing.run(feeds)),
    close: () => reducing.release(),
  };
}

/** Multiplies one row by an int8 matrix that is packed at load. The engine's linear layers use this operator. */
async function integerProduct(ort: typeof Ort, bytes: number, threads: number, dir: string): Promise<Scan> {
  const columns = bytes / WIDTH;
  const file = `scan-${bytes}.bin`;
  mkdirSync(dir, { recursive: true });
  if (!existsSync(path.join(dir, file))) {
    writeFileSync(
      path.join(dir, `${file}.part`),
      new Int8Array(bytes).map((_, i) => (i * 37) % 101),
    );
    renameSync(path.join(dir, `${file}.part`), path.join(dir, file));
  }
  const g = new OnnxWriter();
  g.input('x', 'uint8', [1, WIDTH]);
  g.node(
    'MatMulInteger',
    ['x', g.external({ name: 'matrix', type: 'int8', dims: [WIDTH, columns], offset: 0, length: bytes }, file)],
    ['y'],
  );
  g.output('y', 'int32', [1, columns]);
  const graph = path.join(dir, `scan-${bytes}.onnx`);
  writeFileSync(graph, g.finish());
  const product = await session(ort, graph, threads);
  const feeds = { x: new ort.Tensor('uint8', new Uint8Array(WIDTH).fill(3), [1, WIDTH]) };
  return {
    name: 'onnxruntime, row times packed int8 matrix',
    bytes,
    scan: async () => void (await product.run(feeds)),
    close: () => product.release(),
  };
}
