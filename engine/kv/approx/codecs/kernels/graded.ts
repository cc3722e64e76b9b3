/**
 * Graded formats (codecs/registry.ts): values in 2, 3 or 4 bits, by tokens and channels. x [kvHeads, rows, width]: rows
 * are tokens and columns are channels (byToken), or the other way round. Bytes: see the registry.
 */
import { codeOf, levelsOf, packFour, packThree, packTwo, unpackFour, unpackThree, unpackTwo } from './bits';
import { bytesOf, largestOf, MIN_SCALE } from './vectors';

const UNITS: i32 = 8;
/** Bits of 1 as float32. Each step of a scale, about 1/32 octave, subtracts so many. */
const ONE: i32 = 0x3f800000;
const STEP_BITS: i32 = 18;
/** Code of a scale of 0. */
const NOTHING: i32 = 255;
const HALF_STEP: i32 = 1 << (STEP_BITS - 1);
/** Smallest share of the largest square: about the last bit of a float. */
const MIN_SQUARES: f32 = 1e-12;
/** Bytes after each area in `spare`, so that whole vectors can be read and written at its end. */
const PADDING: i32 = 128;

/** End of an area of floats in `spare`. */
@inline
function area(at: usize, floats: i32): usize {
  return (at + (floats << 2) + PADDING) & ~15;
}

@inline
function sizeOf(tokens: i32, channels: i32, bits: i32): i32 {
  return UNITS + channels + tokens + ((tokens * channels * bits + 7) >> 3);
}

/**
 * @param spare scratch for channels + 3 * tokens + width floats, one byte per value of a head, and 6 * PADDING bytes.
 */
export function gradedEncode(x: usize, kvHeads: i32, rows: i32, width: i32, byToken: bool, bits: i32, out: usize, spare: usize): void {
  const tokens = byToken ? rows : width;
  const channels = byToken ? width : rows;
  const means = spare;
  const factors = area(means, channels);
  const same = area(factors, tokens);
  const products = area(same, width);
  const squares = area(products, tokens);
  const codes = area(squares, tokens);
  const levels = levelsOf(bits);
  for (let h = 0; h < kvHeads; h++) {
    const largest = largestOf(x, rows * width);
    meansOf(x, rows, width, byToken, means);
    codeMeans(means, channels, out);
    const inverse: f32 = <f64>largest > MIN_SCALE ? 1 / largest : 0;
    factorsOf(x, rows, width, byToken, means, inverse, factors);
    fill(products, tokens, 0);
    fill(squares, tokens, 0);
    for (let row = 0; row < rows; row++) {
      // Repeats the row's common mean or factor for each column.
      fill(same, width, load<f32>((byToken ? factors : means) + (row << 2)));
      const values = x + ((row * width) << 2);
      codeRow(values, width, byToken ? means : same, byToken ? same : factors, bits, codes + row * width);
      if (byToken) addRow(values, width, means, same, codes + row * width, levels, products + (row << 2), squares + (row << 2));
      else addColumns(values, width, same, factors, codes + row * width, levels, products, squares);
    }
    codeScales(products, squares, factors, tokens, out, out + UNITS + channels);
    // Unused bits of the last byte are 0.
    v128.store(codes + rows * width, i64x2.splat(0));
    const to = out + UNITS + channels + tokens;
    if (bits == 2) packTwo(codes, rows * width, to);
    else if (bits == 4) packFour(codes, rows * width, to);
    else packThree(codes, rows * width, to);
    x += (rows * width) << 2;
    out += sizeOf(tokens, channels, bits);
  }
}

/** Writes up to 15 floats beyond x. */
export function gradedDecode(from: usize, kvHeads: i32, rows: i32, width: i32, byToken: bool, bits: i32, x: usize, spare: usize): void {
  const tokens = byToken ? rows : width;
  const channels = byToken ? width : rows;
  const means = spare;
  const factors = area(means, channels);
  const same = area(factors, tokens);
  const codes = area(same, width);
  const levels = levelsOf(bits);
  for (let h = 0; h < kvHeads; h++) {
    const meanUnit = load<f32>(from);
    for (let i = 0; i < channels; i++) store<f32>(means + (i << 2), <f32>load<i8>(from + UNITS + i) * meanUnit);
    const scaleUnit = load<f32>(from, 4);
    for (let i = 0; i < tokens; i++) store<f32>(factors + (i << 2), scaleOf(load<u8>(from + UNITS + channels + i), scaleUnit));
    const packed = from + UNITS + channels + tokens;
    if (bits == 2) unpackTwo(packed, rows * width, codes);
    else if (bits == 4) unpackFour(packed, rows * width, codes);
    else unpackThree(packed, rows * width, codes);
    for (let row = 0; row < rows; row++) {
      fill(same, width, load<f32>((byToken ? factors : means) + (row << 2)));
      const columnMeans = byToken ? means : same;
      const columnFactors = byToken ? same : factors;
      const values = x + ((row * width) << 2);
      for (let i = 0; i < width; i += 16) {
        const level = v128.swizzle(levels, v128.load(codes + row * width + i));
        const low = i16x8.extend_low_i8x16_s(level);
        const high = i16x8.extend_high_i8x16_s(level);
        const at = i << 2;
        put(values + at, i32x4.extend_low_i16x8_s(low), columnFactors + at, columnMeans + at);
        put(values + at + 16, i32x4.extend_high_i16x8_s(low), columnFactors + at + 16, columnMeans + at + 16);
        put(values + at + 32, i32x4.extend_low_i16x8_s(high), columnFactors + at + 32, columnMeans + at + 32);
        put(values + at + 48, i32x4.extend_high_i16x8_s(high), columnFactors + at + 48, columnMeans + at + 48);
      }
    }
    x += (rows * width) << 2;
    from += sizeOf(tokens, channels, bits);
  }
}

@inline
function put(x: usize, levels: v128, factors: usize, means: usize): void {
  v128.store(x, f32x4.add(f32x4.mul(f32x4.convert_i32x4_s(levels), v128.load(factors)), v128.load(means)));
}

function fill(to: usize, n: i32, value: f32): void {
  const values = f32x4.splat(value);
  for (let i = 0; i < n + 12; i += 4) v128.store(to + (i << 2), values);
}

@inline
function sumOf(v: v128): f32 {
  return f32x4.extract_lane(v, 0) + f32x4.extract_lane(v, 1) + (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3));
}

/** Mean of each channel. */
function meansOf(x: usize, rows: i32, width: i32, byToken: bool, means: usize): void {
  if (byToken) {
    fill(means, width, 0);
    for (let row = 0; row < rows; row++) {
      for (let i = 0; i < width; i += 4) {
        const mean = means + (i << 2);
        v128.store(mean, f32x4.add(v128.load(mean), v128.load(x + ((row * width + i) << 2))));
      }
    }
    for (let i = 0; i < width; i++) store<f32>(means + (i << 2), load<f32>(means + (i << 2)) / <f32>rows);
    return;
  }
  for (let row = 0; row < rows; row++) {
    const at = x + ((row * width) << 2);
    let sums = f32x4.splat(0);
    let i = 0;
    for (; i + 4 <= width; i += 4) sums = f32x4.add(sums, v128.load(at + (i << 2)));
    let sum = sumOf(sums);
    for (; i < width; i++) sum += load<f32>(at + (i << 2));
    store<f32>(means + (row << 2), sum / <f32>width);
  }
}

/** Writes the means, and replaces them by the values that are read back. */
function codeMeans(means: usize, channels: i32, out: usize): void {
  const largest = largestOf(means, channels);
  const unit: f32 = <f64>largest > MIN_SCALE ? largest / 127 : 0;
  store<f32>(out, unit);
  for (let i = 0; i < channels; i++) {
    const code = unit > 0 ? nearest(load<f32>(means + (i << 2)) / unit) : 0;
    store<i8>(out + UNITS + i, <i8>code);
    store<f32>(means + (i << 2), code * unit);
  }
}

/**
 * Factor of each token's values minus means: 1 over the root of their mean square. @param inverse 1 over the largest
 * value, so that squares do not overflow.
 */
function factorsOf(x: usize, rows: i32, width: i32, byToken: bool, means: usize, inverse: f32, factors: usize): void {
  const scale = f32x4.splat(inverse);
  if (!byToken) fill(factors, width, 0);
  for (let row = 0; row < rows; row++) {
    const at = x + ((row * width) << 2);
    if (!byToken) {
      const mean = f32x4.splat(load<f32>(means + (row << 2)));
      for (let i = 0; i < width; i += 4) {
        const v = f32x4.mul(f32x4.sub(v128.load(at + (i << 2)), mean), scale);
        v128.store(factors + (i << 2), f32x4.add(v128.load(factors + (i << 2)), f32x4.mul(v, v)));
      }
      continue;
    }
    let sums = f32x4.splat(0);
    let i = 0;
    for (; i + 4 <= width; i += 4) {
      const v = f32x4.mul(f32x4.sub(v128.load(at + (i << 2)), v128.load(means + (i << 2))), scale);
      sums = f32x4.add(sums, f32x4.mul(v, v));
    }
    let sum = sumOf(sums);
    for (; i < width; i++) {
      const v = (load<f32>(at + (i << 2)) - load<f32>(means + (i << 2))) * inverse;
      sum += v * v;
    }
    store<f32>(factors + (row << 2), sum);
  }
  const tokens = byToken ? rows : width;
  const channels: f32 = <f32>(byToken ? width : rows);
  for (let i = 0; i < tokens; i++) {
    const sum = load<f32>(factors + (i << 2));
    // A sum that is only the rounding of the means counts as 0.
    store<f32>(factors + (i << 2), sum > MIN_SQUARES ? inverse * sqrt(channels / sum) : 0);
  }
}

/** For one token: adds the products of its scaled values with their levels, and their squares. */
function addRow(x: usize, width: i32, means: usize, factors: usize, codes: usize, levels: v128, products: usize, squares: usize): void {
  let product = f32x4.splat(0);
  let square = f32x4.splat(0);
  let i = 0;
  for (; i + 4 <= width; i += 4) {
    const at = i << 2;
    const v = f32x4.mul(f32x4.sub(v128.load(x + at), v128.load(means + at)), v128.load(factors + at));
    product = f32x4.add(product, f32x4.mul(v, levelsAt(codes + i, levels)));
    square = f32x4.add(square, f32x4.mul(v, v));
  }
  let products1 = sumOf(product);
  let squares1 = sumOf(square);
  for (; i < width; i++) {
    const at = i << 2;
    const v = (load<f32>(x + at) - load<f32>(means + at)) * load<f32>(factors + at);
    products1 += v * f32x4.extract_lane(levelsAt(codes + i, levels), 0);
    squares1 += v * v;
  }
  store<f32>(products, products1);
  store<f32>(squares, squares1);
}

/** For one channel: adds the same to the sums of all tokens. */
function addColumns(x: usize, width: i32, means: usize, factors: usize, codes: usize, levels: v128, products: usize, squares: usize): void {
  for (let i = 0; i < width; i += 4) {
    const at = i << 2;
    const v = f32x4.mul(f32x4.sub(v128.load(x + at), v128.load(means + at)), v128.load(factors + at));
    v128.store(products + at, f32x4.add(v128.load(products + at), f32x4.mul(v, levelsAt(codes + i, levels))));
    v128.store(squares + at, f32x4.add(v128.load(squares + at), f32x4.mul(v, v)));
  }
}

/** Levels of four codes, as floats. */
@inline
function levelsAt(codes: usize, levels: v128): v128 {
  return f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(i16x8.extend_low_i8x16_s(v128.swizzle(levels, v128.load32_zero(codes)))));
}

/**
 * Scale of each token, chosen so that the product of decoded and original values is the square of the original ones.
 * The scale of least squared error would lower all scores of the token's key, the largest ones most.
 */
function codeScales(products: usize, squares: usize, factors: usize, tokens: i32, out: usize, codes: usize): void {
  let most: f32 = 0;
  for (let i = 0; i < tokens; i++) {
    const product = load<f32>(products + (i << 2)) * load<f32>(factors + (i << 2));
    const scale: f32 = product > 0 ? load<f32>(squares + (i << 2)) / product : 0;
    store<f32>(products + (i << 2), scale);
    most = max(most, scale);
  }
  const unit: f32 = <f64>most > MIN_SCALE ? most : 0;
  store<f32>(out, unit, 4);
  for (let i = 0; i < tokens; i++) {
    const share: f32 = unit > 0 ? load<f32>(products + (i << 2)) / unit : 0;
    store<u8>(codes + i, <u8>min(NOTHING, (ONE - reinterpret<i32>(share) + HALF_STEP) >> STEP_BITS));
  }
}

@inline
function scaleOf(code: i32, unit: f32): f32 {
  return code == NOTHING ? 0 : reinterpret<f32>(ONE - (code << STEP_BITS)) * unit;
}

/** Codes of a row, one per byte. Writes up to 15 beyond the last. */
function codeRow(x: usize, width: i32, means: usize, factors: usize, bits: i32, codes: usize): void {
  for (let i = 0; i < width; i += 16) {
    const at = i << 2;
    v128.store(
      codes + i,
      bytesOf(
        codeOf(x + at, means + at, factors + at, bits),
        codeOf(x + at + 16, means + at + 16, factors + at + 16, bits),
        codeOf(x + at + 32, means + at + 32, factors + at + 32, bits),
        codeOf(x + at + 48, means + at + 48, factors + at + 48, bits),
      ),
    );
  }
}
