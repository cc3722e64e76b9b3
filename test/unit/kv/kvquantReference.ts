/** 3 bits as in KVQuant, from its definition (engine/cache/codecs/kvquant3.ts) and value by value: what the kernels must write. */

const OUTLIER_SHARE = 0.01;
const MIN_SCALE = 1e-38;

/** To the nearest, half up. */
const rounded = (value: number): number => (Math.ceil(value) - 0.5 > value ? Math.ceil(value) - 1 : Math.ceil(value));
const perUnitOf = (unit: number): number => (unit > MIN_SCALE ? 1 / unit : 0);
const indices = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** x [kvHeads, rows, width] -> bytes. */
export function kvquantBytes(x: Float32Array, kvHeads: number, rows: number, width: number): number[] {
  const heads: number[] = [];
  const bins: number[] = [];
  const weights = new Float64Array(256);
  for (let h = 0; h < kvHeads; h++) {
    const head = x.subarray(h * rows * width, (h + 1) * rows * width);
    const outliers = farthest(head, rows, width);
    const most = Math.max(0, ...outliers.map((i) => Math.abs(head[i]!)));
    const outlierUnit = Math.fround(most / 127);
    const rest = indices(rows).map((r) =>
      indices(width)
        .filter((j) => !outliers.includes(r * width + j))
        .map((j) => head[r * width + j]!),
    );
    const bounds = rest.map((row): [number, number] => (row.length ? [Math.min(...row), Math.max(...row)] : [0, 0]));
    const unit = Math.fround(Math.max(...bounds.map(([lo, hi]) => Math.max(hi, -lo))) / 127);
    const codes = bounds.map(([lo, hi]): [number, number] => [
      rounded(lo * perUnitOf(unit)),
      rounded(hi * perUnitOf(unit)),
    ]);
    heads.push(...float32(unit), ...float32(outlierUnit));
    for (const i of outliers) heads.push(i & 255, i >> 8, rounded(head[i]! * perUnitOf(outlierUnit)) & 255);
    for (const [lo, hi] of codes) heads.push(lo & 255, hi & 255);
    for (const [r, [lo, hi]] of codes.entries()) {
      const perBin = hi > lo ? (255 * perUnitOf(unit)) / (hi - lo) : 0;
      const offset = Math.fround(0.5 - lo * unit * perBin);
      for (let j = 0; j < width; j++) {
        const isOutlier = outliers.includes(r * width + j);
        const bin = isOutlier
          ? 0
          : Math.min(
              255,
              Math.max(0, Math.floor(Math.fround(Math.fround(head[r * width + j]! * Math.fround(perBin)) + offset))),
            );
        bins.push(bin);
        if (!isOutlier) weights[bin]! += (hi - lo) ** 2;
      }
    }
  }
  const levels = levelsOf(weights);
  const codes = bins.map((bin) => indices(7).filter((i) => (levels[i]! + levels[i + 1]!) >> 1 < bin).length);
  return [...levels, ...heads, ...packed(codes)];
}

/** One value in a hundred: first those that are farthest from their row's mean, in 32nds of its deviation; of those alike the first. Ascending. */
function farthest(head: Float32Array, rows: number, width: number): number[] {
  const distances = indices(rows).flatMap((r) => {
    const row = head.subarray(r * width, (r + 1) * width);
    const [origin] = row;
    let [sum, squares] = [0, 0];
    for (const value of row) {
      sum += value - origin!;
      squares += (value - origin!) * (value - origin!);
    }
    const mean = sum / width;
    const variance = squares / width - mean * mean;
    const perUnit = variance > 1e-60 ? 32 / Math.sqrt(variance) : 0;
    return Array.from(row, (value) => Math.floor(Math.min(511, Math.abs(value - (origin! + mean)) * perUnit)));
  });
  const order = indices(head.length).sort((a, b) => distances[b]! - distances[a]! || a - b);
  return order.slice(0, Math.floor(head.length * OUTLIER_SHARE)).sort((a, b) => a - b);
}

/** Lloyd's algorithm, from levels as dense as the cube root of what there is. */
function levelsOf(weights: Float64Array): number[] {
  const densities = weights.map((weight) => Math.cbrt(weight));
  const total = densities.reduce((sum, density) => sum + density, 0);
  let points = indices(8).map((level) => {
    let [sum, bin] = [densities[0]!, 0];
    while (sum < ((level + 0.5) / 8) * total) sum += densities[++bin]!;
    return bin;
  });
  for (let round = 0; round < 8; round++) {
    let from = 0;
    points = points.map((point, i) => {
      const end = i < 7 ? Math.max(from, Math.floor((point + points[i + 1]!) / 2) + 1) : 256;
      const own = indices(end - from).map((bin) => from + bin);
      from = end;
      const weight = own.reduce((sum, bin) => sum + weights[bin]!, 0);
      return weight > 0 ? own.reduce((sum, bin) => sum + weights[bin]! * bin, 0) / weight : point;
    });
  }
  return points.map((point) => Math.floor(point + 0.5));
}

function packed(codes: readonly number[]): number[] {
  const bytes = new Array<number>(Math.ceil((3 * codes.length) / 8)).fill(0);
  for (const [i, code] of codes.entries())
    for (let bit = 0; bit < 3; bit++) if ((code >> bit) & 1) bytes[(3 * i + bit) >> 3]! |= 1 << ((3 * i + bit) & 7);
  return bytes;
}

function float32(value: number): number[] {
  return [...new Uint8Array(Float32Array.of(value).buffer)];
}
