/** Raw bytes of stored tensors as float32. Pure functions. */

/**
 * Decodes 8-bit codes [scales.length, width] into out: code * scale. The code -128 counts as -127. The codes of the
 * engine end there, so requantising such a row would move all of its codes. And the writers of the format take the
 * largest weight / 127.5 for the scale, so what became -128 was -127.5, to which -127 is as near.
 * Measured on the built-in model as that library stores it, where a quarter of the rows have a -128, mean KL
 * divergence from bfloat16 over random tokens: 0.0018 with -128, with -127 as well, 0.0023 requantised.
 */
export function fromCodes(raw: Uint8Array, scales: Float32Array, out: Float32Array): void {
  const codes = new Int8Array(raw.buffer, raw.byteOffset, raw.length);
  const width = codes.length / scales.length;
  for (let r = 0; r < scales.length; r++)
    for (let i = r * width, end = i + width; i < end; i++) out[i] = Math.max(-127, codes[i]!) * scales[r]!;
}

/** Converts little-endian raw bytes into out. Returns false if a number is not finite. */
export function toFloat32(raw: Uint8Array, dtype: string, out: Float32Array): boolean {
  // Finite times 0 is 0; NaN and infinity times 0 are NaN, and a NaN stays in the sum.
  let check = 0;
  if (dtype === 'F32') {
    new Uint8Array(out.buffer, out.byteOffset, out.byteLength).set(raw);
    for (let i = 0; i < out.length; i++) check += out[i]! * 0;
    return check === 0;
  }
  const halves =
    raw.byteOffset % 2 === 0
      ? new Uint16Array(raw.buffer, raw.byteOffset, out.length)
      : new Uint16Array(raw.slice().buffer);
  if (dtype === 'BF16') {
    const bits = new Uint32Array(out.buffer, out.byteOffset, out.length);
    for (let i = 0; i < out.length; i++) bits[i] = halves[i]! << 16;
  } else {
    const table = halfTable();
    for (let i = 0; i < out.length; i++) out[i] = table[halves[i]!]!;
  }
  for (let i = 0; i < out.length; i++) check += out[i]! * 0;
  return check === 0;
}

let halves: Float32Array | null = null;

/** float16 bits -> float32, all 65,536 of them. */
function halfTable(): Float32Array {
  if (halves) return halves;
  halves = new Float32Array(65_536);
  for (let bits = 0; bits < 65_536; bits++) {
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    const value =
      exponent === 31
        ? fraction
          ? Number.NaN
          : Number.POSITIVE_INFINITY
        : exponent === 0
          ? fraction * 2 ** -24
          : (1024 + fraction) * 2 ** (exponent - 25);
    halves[bits] = bits & 0x8000 ? -value : value;
  }
  return halves;
}
