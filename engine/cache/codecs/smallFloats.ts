/**
 * The small floats of the OCP formats: E4M3 (sign, 4 bits of exponent with bias 7, 3 of mantissa; no infinities, NaN is
 * 0x7f, largest 448) and E2M1 (bias 1, 1 bit of mantissa; 0 .5 1 1.5 2 3 4 6, no NaN). Conversion from float32 rounds to
 * nearest even and saturates. It is a look-up: where a value rounds to depends on its leading bits and on whether any
 * bit below them is set, since the midpoints of neighbours have few bits.
 */

/** Values of the codes 0 .. 2^7 - 1 or 2^3 - 1, ascending; a code with the sign bit above them is the negative one. */
function magnitudes(exponentBits: number, mantissaBits: number, bias: number): Float64Array {
  const steps = 1 << mantissaBits;
  return Float64Array.from({ length: 1 << (exponentBits + mantissaBits) }, (_, code) => {
    const exponent = code >> mantissaBits;
    const mantissa = (code & (steps - 1)) / steps;
    return exponent === 0 ? mantissa * 2 ** (1 - bias) : (1 + mantissa) * 2 ** (exponent - bias);
  });
}

class SmallFloat {
  /** The value of each code, sign included: [256] or [16]. */
  readonly values: Float32Array;
  readonly largest: number;
  /** float32 bits are looked up by those from this one on. */
  readonly shift: number;
  /** The bits below `shift`. */
  readonly rest: number;
  /** Codes by (bits >>> shift) * 2 + (1 where any bit of `rest` is set). */
  readonly codes: Uint8Array;

  /** @param nan the largest code stands for NaN. */
  constructor(exponentBits: number, mantissaBits: number, bias: number, nan: boolean) {
    const finite = magnitudes(exponentBits, mantissaBits, bias);
    const sign = finite.length;
    const most = sign - (nan ? 2 : 1);
    this.largest = finite[most]!;
    if (nan) finite[sign - 1] = Number.NaN;
    this.values = Float32Array.from({ length: 2 * sign }, (_, code) => (code < sign ? finite[code]! : -finite[code - sign]!));
    // A midpoint has one bit more than a mantissa.
    this.shift = 23 - (mantissaBits + 1);
    this.rest = (1 << this.shift) - 1;
    this.codes = new Uint8Array(2 ** (33 - this.shift));
    const word = new Uint32Array(1);
    const float = new Float32Array(word.buffer);
    let code = 0;
    for (let i = 0; i < this.codes.length; i++) {
      if (i === this.codes.length / 2) code = 0;
      word[0] = (i >>> 1) * 2 ** this.shift + (i & 1) * 2 ** (this.shift - 1);
      const x = Math.abs(float[0]!);
      const negative = i >= this.codes.length / 2 ? sign : 0;
      if (Number.isNaN(x)) code = nan ? sign - 1 : 0;
      else {
        // Magnitudes ascend with their bits. Up while the midpoint to the next one is below x, or x is the midpoint and this code is odd.
        while (code < most) {
          const midpoint = (finite[code]! + finite[code + 1]!) / 2;
          if (x < midpoint || (x === midpoint && code % 2 === 0)) break;
          code++;
        }
      }
      this.codes[i] = negative + code;
    }
  }

  /** Slow, for single values. */
  encode(value: number): number {
    const bits = new Uint32Array(Float32Array.of(value).buffer)[0]!;
    return this.codes[(bits >>> this.shift) * 2 + ((0 - (bits & this.rest)) >>> 31)]!;
  }
}

export const E4M3 = new SmallFloat(4, 3, 7, true);
export const E2M1 = new SmallFloat(2, 1, 1, false);
