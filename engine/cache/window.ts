/**
 * The KV window: the resident K/V rows that a step attends to. Owns the arrays and their layout; does not know who
 * holds which slot. Slots are per token and need no order, a mask says who sees which.
 */
import type { KvPrecision } from '../protocol.ts';

export interface KvShape {
  readonly numLayers: number;
  readonly kvHeads: number;
  readonly headSize: number;
  readonly kv: KvPrecision;
  /** Bytes that the runner keeps beside each slot's rows; none when left out. */
  readonly runnerBytes?: number;
}

type Rows = Int8Array | Float32Array;

/**
 * K/V rows of n tokens outside the window, losslessly: what a step emits and what the store keeps.
 * keys [numLayers, kvHeads, headSize, n], keyScales [numLayers, kvHeads, n],
 * values [numLayers, kvHeads, n, headSize], valueScales [numLayers, kvHeads, n]; the scales are empty in float32.
 */
export interface KvRows {
  readonly numTokens: number;
  readonly keys: Rows;
  readonly keyScales: Float32Array;
  readonly values: Rows;
  readonly valueScales: Float32Array;
}

/** Bytes that one slot of the window takes: K and V over all layers, scales, position, stamp and what the runner keeps beside them. */
export function kvBytesPerToken(shape: KvShape): number {
  const perHead = shape.kv === 'int8' ? 2 * shape.headSize + 8 : 8 * shape.headSize;
  return shape.numLayers * shape.kvHeads * perHead + 8 + (shape.runnerBytes ?? 0);
}

function newRows(kv: KvPrecision, length: number): Rows {
  return kv === 'int8' ? new Int8Array(length) : new Float32Array(length);
}

export function newKvRows(shape: KvShape, numTokens: number): KvRows {
  const heads = shape.numLayers * shape.kvHeads;
  const scales = shape.kv === 'int8' ? heads * numTokens : 0;
  return {
    numTokens,
    keys: newRows(shape.kv, heads * shape.headSize * numTokens),
    keyScales: new Float32Array(scales),
    values: newRows(shape.kv, heads * shape.headSize * numTokens),
    valueScales: new Float32Array(scales),
  };
}

export class KvWindow {
  readonly shape: KvShape;
  /** P. */
  numSlots = 0;
  /** Per layer, [kvHeads, headSize, P]. Replaced by `resize`. */
  keys: Rows[] = [];
  /** Per layer, [kvHeads, P, headSize]. */
  values: Rows[] = [];
  /** Per layer, [kvHeads, P]; empty arrays in float32. */
  keyScales: Float32Array[] = [];
  valueScales: Float32Array[] = [];
  /** Position in its sequence of the token in each slot, [P]: the key-bias remedy needs it. */
  positions: Int32Array = new Int32Array(0);
  /** When each slot was written last, [P], in writes of this window: tells whether its token is still the same. */
  stamps: Uint32Array = new Uint32Array(0);
  /** Changes whenever the arrays are replaced. */
  generation = 0;
  #numWrites = 0;

  constructor(shape: KvShape, numSlots: number) {
    this.shape = shape;
    this.resize(numSlots);
  }

  get bytes(): number {
    return this.numSlots * kvBytesPerToken(this.shape);
  }

  /** Re-lays the window out for another P. Rows of slots below min(old P, new P) keep their slots, the rest is lost. */
  resize(numSlots: number): void {
    const { numLayers, kvHeads, headSize, kv } = this.shape;
    const kept = Math.min(this.numSlots, numSlots);
    const oldP = this.numSlots;
    const relayout = <A extends Rows>(old: A | undefined, fresh: A, rows: number, width: number): A => {
      if (old) for (let r = 0; r < rows; r++) fresh.set(old.subarray(r * oldP * width, (r * oldP + kept) * width) as never, r * numSlots * width);
      return fresh;
    };
    const scales = kv === 'int8' ? kvHeads * numSlots : 0;
    for (let l = 0; l < numLayers; l++) {
      this.keys[l] = relayout(this.keys[l], newRows(kv, kvHeads * headSize * numSlots), kvHeads * headSize, 1);
      this.values[l] = relayout(this.values[l], newRows(kv, kvHeads * headSize * numSlots), kvHeads, headSize);
      this.keyScales[l] = relayout(this.keyScales[l], new Float32Array(scales), scales ? kvHeads : 0, 1);
      this.valueScales[l] = relayout(this.valueScales[l], new Float32Array(scales), scales ? kvHeads : 0, 1);
    }
    const positions = new Int32Array(numSlots);
    positions.set(this.positions.subarray(0, kept));
    this.positions = positions;
    const stamps = new Uint32Array(numSlots);
    stamps.set(this.stamps.subarray(0, kept));
    this.stamps = stamps;
    this.numSlots = numSlots;
    this.generation++;
  }

  /** Copies rows[from .. from+slots.length) into `slots`; their tokens stand at positions startIndex and on. */
  write(slots: Int32Array, rows: KvRows, from: number, startIndex: number): void {
    const { numLayers, kvHeads, headSize, kv } = this.shape;
    const P = this.numSlots;
    const n = rows.numTokens;
    const count = slots.length;
    this.#numWrites++;
    for (let i = 0; i < count; i++) {
      this.positions[slots[i]!] = startIndex + i;
      this.stamps[slots[i]!] = this.#numWrites;
    }
    for (let l = 0; l < numLayers; l++) {
      const keys = this.keys[l]!;
      const values = this.values[l]!;
      for (let h = 0; h < kvHeads; h++) {
        const head = l * kvHeads + h;
        for (let d = 0; d < headSize; d++) {
          const source = (head * headSize + d) * n + from;
          const target = (h * headSize + d) * P;
          for (let i = 0; i < count; i++) keys[target + slots[i]!] = rows.keys[source + i]!;
        }
        for (let i = 0; i < count; i++) {
          const source = (head * n + from + i) * headSize;
          values.set(rows.values.subarray(source, source + headSize) as never, (h * P + slots[i]!) * headSize);
          if (kv === 'int8') {
            this.keyScales[l]![h * P + slots[i]!] = rows.keyScales[head * n + from + i]!;
            this.valueScales[l]![h * P + slots[i]!] = rows.valueScales[head * n + from + i]!;
          }
        }
      }
    }
  }

  /** Copies the rows of `slots` out, in order. */
  read(slots: Int32Array): KvRows {
    const { numLayers, kvHeads, headSize, kv } = this.shape;
    const P = this.numSlots;
    const n = slots.length;
    const rows = newKvRows(this.shape, n);
    for (let l = 0; l < numLayers; l++) {
      const keys = this.keys[l]!;
      const values = this.values[l]!;
      for (let h = 0; h < kvHeads; h++) {
        const head = l * kvHeads + h;
        for (let d = 0; d < headSize; d++) {
          const source = (h * headSize + d) * P;
          const target = (head * headSize + d) * n;
          for (let i = 0; i < n; i++) rows.keys[target + i] = keys[source + slots[i]!]!;
        }
        for (let i = 0; i < n; i++) {
          const source = (h * P + slots[i]!) * headSize;
          rows.values.set(values.subarray(source, source + headSize) as never, (head * n + i) * headSize);
          if (kv === 'int8') {
            rows.keyScales[head * n + i] = this.keyScales[l]![h * P + slots[i]!]!;
            rows.valueScales[head * n + i] = this.valueScales[l]![h * P + slots[i]!]!;
          }
        }
      }
    }
    return rows;
  }

  /** Copies the rows of slot from[i] over slot to[i], with their positions; no slot may be in both. */
  move(from: Int32Array, to: Int32Array): void {
    const { numLayers, kvHeads, headSize, kv } = this.shape;
    const P = this.numSlots;
    this.#numWrites++;
    for (let i = 0; i < from.length; i++) {
      this.positions[to[i]!] = this.positions[from[i]!]!;
      this.stamps[to[i]!] = this.#numWrites;
    }
    for (let l = 0; l < numLayers; l++) {
      const keys = this.keys[l]!;
      const values = this.values[l]!;
      for (let row = 0; row < kvHeads * headSize * P; row += P) {
        for (let i = 0; i < from.length; i++) keys[row + to[i]!] = keys[row + from[i]!]!;
      }
      for (let head = 0; head < kvHeads * P; head += P) {
        for (let i = 0; i < from.length; i++) {
          const source = (head + from[i]!) * headSize;
          values.copyWithin((head + to[i]!) * headSize, source, source + headSize);
          if (kv === 'int8') {
            this.keyScales[l]![head + to[i]!] = this.keyScales[l]![head + from[i]!]!;
            this.valueScales[l]![head + to[i]!] = this.valueScales[l]![head + from[i]!]!;
          }
        }
      }
    }
  }
}
