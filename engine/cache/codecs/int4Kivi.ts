/**
 * 4 bits as in KIVI (arXiv 2402.02750): K per channel over the tokens of a block, whose channels differ far more than its tokens
 * do, and V per token in groups of 32 channels. Asymmetric: a group spans lo .. hi in 15 steps. KIVI keeps lo and the step in 16
 * bits each, 5 bits per value; here lo and hi are 8-bit codes in units of the head's largest value in the block / 127, 4.5
 * bits: that is as fine as the window's own rows. Bytes: units [kvHeads] float32, then for each group lo, hi and its values,
 * two per byte, the first in the low half.
 */
import type { SideFormat, TokenFormat } from './codecFormat.ts';
import { finite } from './scales.ts';

/** Channels that share bounds in V. */
const VALUE_GROUP = 32;

function bytes(kvHeads: number, rows: number, width: number, group: number): number {
  const whole = Math.floor(width / group);
  const rest = width - whole * group;
  return kvHeads * (4 + rows * (whole * (2 + Math.ceil(group / 2)) + (rest > 0 ? 2 + Math.ceil(rest / 2) : 0)));
}

/** x [kvHeads, rows, width], groups along the rows. */
function encode(x: Float32Array, kvHeads: number, rows: number, width: number, group: number, out: Uint8Array, at: number): void {
  const view = new DataView(out.buffer, out.byteOffset);
  const bounds = new Float32Array(2 * rows * Math.ceil(width / group));
  let to = at + 4 * kvHeads;
  for (let h = 0; h < kvHeads; h++) {
    const start = h * rows * width;
    const unit = Math.fround(findBounds(x, start, rows, width, group, bounds) / 127);
    view.setFloat32(at + 4 * h, unit, true);
    const perUnit = unit > 1e-38 ? 1 / unit : 0;
    let bound = 0;
    for (let row = start; row < start + rows * width; row += width) {
      for (let i = row; i < row + width; i += group) {
        const end = Math.min(i + group, row + width);
        const lo = Math.round(bounds[bound]! * perUnit);
        const hi = Math.round(bounds[bound + 1]! * perUnit);
        bound += 2;
        out[to] = lo;
        out[to + 1] = hi;
        to += 2;
        const perStep = hi > lo ? (15 * perUnit) / (hi - lo) : 0;
        // A value becomes steps above lo. What rounding the bounds left outside them is clipped.
        const offset = 0.5 - lo * unit * perStep;
        let j = i;
        for (; j + 1 < end; j += 2) {
          const a = (x[j]! * perStep + offset) | 0;
          const b = (x[j + 1]! * perStep + offset) | 0;
          out[to++] = clipped(a) | (clipped(b) << 4);
        }
        if (j < end) out[to++] = clipped((x[j]! * perStep + offset) | 0);
      }
    }
  }
}

/** The least and the largest of each group, in turn. @returns the largest magnitude. */
function findBounds(x: Float32Array, start: number, rows: number, width: number, group: number, bounds: Float32Array): number {
  let bound = 0;
  let largest = 0;
  for (let row = start; row < start + rows * width; row += width) {
    for (let i = row; i < row + width; i += group) {
      const end = Math.min(i + group, row + width);
      let lo = x[i]!;
      let hi = lo;
      for (let j = i + 1; j < end; j++) {
        const v = x[j]!;
        if (v < lo) lo = v;
        else if (v > hi) hi = v;
      }
      bounds[bound++] = lo;
      bounds[bound++] = hi;
      if (hi > largest) largest = hi;
      if (-lo > largest) largest = -lo;
    }
  }
  return largest;
}

/** To 0 .. 15. */
function clipped(steps: number): number {
  return steps > 15 ? 15 : steps & ~(steps >> 31);
}

function decode(from: Uint8Array, at: number, kvHeads: number, rows: number, width: number, group: number, x: Float32Array): void {
  const view = new DataView(from.buffer, from.byteOffset);
  let to = at + 4 * kvHeads;
  for (let h = 0; h < kvHeads; h++) {
    const start = h * rows * width;
    const unit = finite(view.getFloat32(at + 4 * h, true), 128);
    for (let row = start; row < start + rows * width; row += width) {
      for (let i = row; i < row + width; i += group) {
        const end = Math.min(i + group, row + width);
        const loCode = (from[to]! << 24) >> 24;
        const hiCode = (from[to + 1]! << 24) >> 24;
        to += 2;
        const lo = loCode * unit;
        const step = ((hiCode - loCode) * unit) / 15;
        let j = i;
        for (; j + 1 < end; j += 2) {
          const pair = from[to++]!;
          x[j] = lo + (pair & 15) * step;
          x[j + 1] = lo + (pair >> 4) * step;
        }
        if (j < end) x[j] = lo + (from[to++]! & 15) * step;
      }
    }
  }
}

export const KIVI_KEYS: SideFormat = {
  layout: 'byChannel',
  bytes: (kvHeads, headSize, n) => bytes(kvHeads, headSize, n, n),
  encode: (x, kvHeads, headSize, n, out, at) => encode(x, kvHeads, headSize, n, n, out, at),
  decode: (from, at, kvHeads, headSize, n, x) => decode(from, at, kvHeads, headSize, n, n, x),
};

export const KIVI_VALUES: TokenFormat = {
  layout: 'byToken',
  bytes: (kvHeads, headSize, n) => bytes(kvHeads, n, headSize, VALUE_GROUP),
  encode: (x, kvHeads, headSize, n, out, at) => encode(x, kvHeads, n, headSize, VALUE_GROUP, out, at),
  decode: (from, at, kvHeads, headSize, n, x) => decode(from, at, kvHeads, n, headSize, VALUE_GROUP, x),
};
