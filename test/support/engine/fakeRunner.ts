/**
 * A deterministic replacement of the model that reveals every wrong mapping. A token's row holds its id, its position
 * and a hash of the whole prefix. A span first reads the rows of its context and checks that their hashes form one
 * chain. Then it computes its own rows from the last one. Logits depend on the hash that was READ. So a wrong slot, a
 * stale row, a wrong split, promotion or compaction either throws or changes tokens.
 *
 * If a context has fewer rows than tokens, the chain may have gaps. Rows that break it are hashed with their contents.
 * Rows from a traced codec are known (see tracedCodec.ts), and the chain continues through them.
 */
import type { BatchSpan, ModelRunner, ReceivedAttention } from '../../../engine/model/batch.ts';
import { type KvRows, type KvShape, newKvRows } from '../../../engine/kv/kvRows.ts';
import type { KvPool } from '../../../engine/kv/pool.ts';
import type { KvPrecision } from '../../../engine/protocol/tasks.ts';
import { type CodedRows, contentOf } from './tracedCodec.ts';

export const VOCAB_SIZE = 64;

export function fakeShape(kv: KvPrecision = 'int8'): KvShape {
  return { numLayers: 2, kvHeads: 2, headSize: 4, kv };
}

function mix(x: number, y: number): number {
  let h = Math.imul(x ^ Math.imul(y + 0x7f4a7c15, 0x9e3779b1), 0x85ebca6b);
  h ^= h >>> 15;
  h = Math.imul(h, 0xc2b2ae35);
  return (h ^ (h >>> 13)) | 0;
}

/** Hash of a prefix that ends in `tokenId` at `position`. */
export function chain(hash: number, tokenId: number, position: number): number {
  return mix(mix(hash, tokenId), position);
}

/** The logits of the fake model after a prefix with this hash. */
export function fakeLogits(hash: number, into = new Float32Array(VOCAB_SIZE)): Float32Array {
  for (let v = 0; v < VOCAB_SIZE; v++) into[v] = (mix(hash, v + 1) >>> 8) / 2 ** 21;
  return into;
}

/** The eight bytes that layer 0's keys hold: id, position, hash. */
function header(tokenId: number, position: number, hash: number): number[] {
  const bytes = [
    tokenId & 255,
    tokenId >> 8,
    position & 255,
    position >> 8,
    hash & 255,
    (hash >> 8) & 255,
    (hash >> 16) & 255,
    (hash >> 24) & 255,
  ];
  return bytes.map((byte) => (byte << 24) >> 24);
}

const cell = (hash: number, index: number): number => (mix(hash, index) << 24) >> 24;

/** What a row holds after a prefix with this hash: for each layer and head, keys and values in turn, then their scales. */
function cellsOf({ numLayers, kvHeads, headSize }: KvShape, hash: number): Int16Array {
  const cells = new Int16Array(numLayers * kvHeads * (2 * headSize + 2));
  let next = 0;
  for (let at = 0; at < numLayers * kvHeads; at++) {
    for (let d = 0; d < headSize; d++) {
      cells[next++] = cell(hash, at * 100 + d);
      cells[next++] = cell(hash, at * 100 + 50 + d);
    }
    cells[next++] = Math.abs(cell(hash, at * 100 + 90));
    cells[next++] = Math.abs(cell(hash, at * 100 + 91));
  }
  return cells;
}

const wrong = (what: string, slot: number, position: number) => ({
  wrong: `Wrong ${what} in slot ${slot} for position ${position}.`,
});

export class FakeRunner implements ModelRunner {
  readonly vocabSize = VOCAB_SIZE;
  readonly pool: KvPool;
  paidColumns = 0;
  /** Tokens computed so far. */
  numComputed = 0;
  readonly batches: { tokens: number; spans: number }[] = [];
  /** Whether rows may have been computed from parts of their contexts. If so, the chain may have gaps as well. */
  hasSketched = false;
  /** The rows that codecs have made. */
  coded: CodedRows | null = null;
  /** Called before each run. May throw, or call the engine as a host does during a step. */
  beforeRun: (batch: readonly BatchSpan[]) => void = () => {};
  /** Result of the last run that measured. The values are arbitrary but depend on the rows that were read. */
  received: ReceivedAttention | null = null;
  /** Requested queries of the last run. The values are arbitrary but depend on the rows that were read. */
  queries: Float32Array | null = null;
  /** The cells that each slot should hold if its row has this hash. */
  readonly #expected: { hash: number; cells: Int16Array }[] = [];

  constructor(pool: KvPool) {
    this.pool = pool;
  }

  async run(batch: readonly BatchSpan[]): Promise<Float32Array> {
    await null;
    // Pages move as in a real step.
    const isPool = ({ lane }: BatchSpan): boolean => lane !== 'prefill';
    const numTokens = batch.filter(isPool).reduce((sum, { tokenIds }) => sum + tokenIds.length, 0);
    this.paidColumns = this.pool.attend(
      batch.filter(isPool).map(({ contextSlots }) => contextSlots),
      numTokens,
    ).paidColumns;
    this.beforeRun(batch);
    const written = new Set<number>();
    for (const span of batch)
      for (const slot of span.newSlots) {
        if (written.has(slot)) throw new Error(`Slot ${slot} is written twice in one step.`);
        written.add(slot);
      }
    const numLogits = batch.reduce((sum, span) => sum + span.numLogits, 0);
    const logits = new Float32Array(numLogits * VOCAB_SIZE);
    const writes: { slots: Int32Array; rows: KvRows; startIndex: number }[] = [];
    let row = 0;
    const asking: number[] = [];
    for (const span of batch) {
      const { tokenIds, startIndex, contextSlots, newSlots } = span;
      if (tokenIds.length === 0 || newSlots.length !== tokenIds.length || contextSlots.length > startIndex)
        throw new Error('A span does not fit itself.');
      const isWhole = contextSlots.length === startIndex && !this.hasSketched;
      let hash = 0;
      const hashes: number[] = [];
      for (const [i, slot] of contextSlots.entries()) {
        if (written.has(slot)) throw new Error(`Slot ${slot} is read and written in one step.`);
        hash = this.#read(slot, contextSlots.length === startIndex ? i : this.pool.positions[slot]!, hash, isWhole);
        hashes.push(hash);
      }
      const rows = newKvRows(this.pool.shape, tokenIds.length);
      for (const [i, tokenId] of tokenIds.entries()) {
        hash = chain(hash, tokenId, startIndex + i);
        this.#fill(rows, i, tokenId, startIndex + i, hash);
        if (i >= tokenIds.length - (span.numQueries ?? 0)) asking.push(hash);
        if (i >= tokenIds.length - span.numLogits)
          fakeLogits(hash, logits.subarray(row * VOCAB_SIZE, ++row * VOCAB_SIZE));
      }
      if (span.measures && batch.length > 1) throw new Error('A span that measures is not alone.');
      this.received = span.measures ? this.#receive([...hashes, ...tokenIds]) : null;
      writes.push({ slots: newSlots, rows, startIndex });
      this.numComputed += tokenIds.length;
    }
    this.queries = asking.length > 0 ? this.#ask(asking) : null;
    for (const { slots, rows, startIndex } of writes) this.pool.write(slots, rows, 0, startIndex);
    this.batches.push({ tokens: written.size, spans: batch.length });
    return logits;
  }

  /** [numLayers, numHeads, n, headSize], two heads in each group. */
  #ask(hashes: readonly number[]): Float32Array {
    const { numLayers, kvHeads, headSize } = this.pool.shape;
    const n = hashes.length * headSize;
    return Float32Array.from(
      { length: numLayers * 2 * kvHeads * n },
      (_, i) =>
        (mix(hashes[Math.floor((i % n) / headSize)]!, Math.floor(i / n) * headSize + (i % headSize)) >> 8) / 2 ** 26,
    );
  }

  #receive(hashes: readonly number[]): ReceivedAttention {
    const { numLayers, kvHeads } = this.pool.shape;
    const of = (which: number): Float32Array =>
      Float32Array.from(
        { length: numLayers * kvHeads * hashes.length },
        (_, i) => (mix(hashes[i % hashes.length]!, Math.floor(i / hashes.length) + 100 * which) >>> 8) / 2 ** 24,
      );
    return { most: of(1), sum: of(2) };
  }

  /** Checks one context row against the chain. Returns its hash; if it may break the chain, a hash of its contents. */
  #read(slot: number, position: number, before: number, mustBeWhole: boolean): number {
    const read = this.#readWhole(slot, position, before);
    if (typeof read === 'number') return read;
    const hash = this.#readCoded(slot, position, before);
    if (hash !== null) return hash;
    if (mustBeWhole) throw new Error(read.wrong);
    return this.#hashOf(slot, before);
  }

  /** The hash of a row that a codec has made of the expected row; null: it is not such a row. */
  #readCoded(slot: number, position: number, before: number): number | null {
    const was = this.coded?.made.get(contentOf(this.pool.shape, this.pool.read(Int32Array.of(slot)), 0));
    return was && this.pool.positions[slot] === position && was.hash === chain(before, was.tokenId, position)
      ? was.hash
      : null;
  }

  /** The hash of a row that continues the chain, or what is wrong with it. */
  #readWhole(slot: number, position: number, before: number): number | { wrong: string } {
    const { pool } = this;
    const { numLayers, kvHeads, headSize, kv } = pool.shape;
    const L = pool.pageSlots;
    if (slot < 0 || slot >= pool.numSlots) return { wrong: `Slot ${slot} is outside the pool of ${pool.numSlots}.` };
    const place = pool.places[Math.floor(slot / L)]!;
    const within = slot % L;
    const heads = pool.keys[0]!;
    const first = place * kvHeads * headSize * L + within;
    const tokenId = (heads[first]! & 255) | ((heads[first + L]! & 255) << 8);
    const hash =
      (heads[first + 4 * L]! & 255) |
      ((heads[first + 5 * L]! & 255) << 8) |
      ((heads[first + 6 * L]! & 255) << 16) |
      ((heads[first + 7 * L]! & 255) << 24);
    if (hash !== chain(before, tokenId, position)) return wrong('prefix', slot, position);
    if (pool.positions[slot] !== position) return wrong('position', slot, position);
    const cells = this.#cellsOf(slot, hash);
    let at = 0;
    for (let l = 0; l < numLayers; l++) {
      const keys = pool.keys[l]!;
      const values = pool.values[l]!;
      for (let row = place * kvHeads; row < (place + 1) * kvHeads; row++) {
        for (let d = 0; d < headSize; d++, at += 2) {
          if (l > 0 && keys[(row * headSize + d) * L + within] !== cells[at]) return wrong('key', slot, position);
          if (values[(row * L + within) * headSize + d] !== cells[at + 1]) return wrong('value', slot, position);
        }
        if (kv !== 'float32') {
          if (pool.keyScales[l]![row * L + within] !== cells[at]) return wrong('key scale', slot, position);
          if (pool.valueScales[l]![row * L + within] !== cells[at + 1]) return wrong('value scale', slot, position);
        }
        at += 2;
      }
    }
    return hash;
  }

  /** Most slots hold the same row in many steps. */
  #cellsOf(slot: number, hash: number): Int16Array {
    const known = this.#expected[slot];
    if (known?.hash === hash) return known.cells;
    const cells = cellsOf(this.pool.shape, hash);
    this.#expected[slot] = { hash, cells };
    return cells;
  }

  #hashOf(slot: number, before: number): number {
    const rows = this.pool.read(Int32Array.of(slot));
    let hash = mix(before, this.pool.positions[slot]!);
    for (const values of [rows.keys, rows.values, rows.keyScales, rows.valueScales])
      for (const value of values) hash = mix(hash, value);
    return hash;
  }

  #fill(rows: KvRows, i: number, tokenId: number, position: number, hash: number): void {
    const { numLayers, kvHeads, headSize, kv } = this.pool.shape;
    const n = rows.numTokens;
    const head = header(tokenId, position, hash);
    const cells = cellsOf(this.pool.shape, hash);
    let next = 0;
    for (let at = 0; at < numLayers * kvHeads; at++) {
      for (let d = 0; d < headSize; d++) {
        const key = cells[next++]!;
        rows.keys[(at * headSize + d) * n + i] = at < kvHeads ? head[at * headSize + d]! : key;
        rows.values[(at * n + i) * headSize + d] = cells[next++]!;
      }
      const [keyScale, valueScale] = [cells[next++]!, cells[next++]!];
      if (kv === 'float32') continue;
      rows.keyScales[at * n + i] = keyScale;
      rows.valueScales[at * n + i] = valueScale;
    }
  }
}
