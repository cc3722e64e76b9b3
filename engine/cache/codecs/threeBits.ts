/** Codes of three bits in bytes: eight in three bytes, the first in the lowest bits. */

export function packedBytes(n: number): number {
  return Math.ceil((3 * n) / 8);
}

/** table[bins[0 .. n)] -> out[at] and on. `bins` must be zero, or anything valid, up to the next multiple of 8. */
export function packThree(bins: Uint8Array, table: Uint8Array, n: number, out: Uint8Array, at: number): void {
  const end = at + packedBytes(n);
  for (let i = 0; i < n; i += 8, at += 3) {
    const low = table[bins[i]!]! | (table[bins[i + 1]!]! << 3) | (table[bins[i + 2]!]! << 6) | (table[bins[i + 3]!]! << 9);
    const high = table[bins[i + 4]!]! | (table[bins[i + 5]!]! << 3) | (table[bins[i + 6]!]! << 6) | (table[bins[i + 7]!]! << 9);
    const word = low | (high << 12);
    out[at] = word;
    if (at + 1 < end) out[at + 1] = word >> 8;
    if (at + 2 < end) out[at + 2] = word >> 16;
  }
}

/** The n codes at bytes[at] and on -> codes, which has room up to the next multiple of 8. */
export function unpackThree(bytes: Uint8Array, at: number, n: number, codes: Uint8Array): void {
  const end = at + packedBytes(n);
  for (let i = 0; i < n; i += 8, at += 3) {
    const word = bytes[at]! | (at + 1 < end ? bytes[at + 1]! << 8 : 0) | (at + 2 < end ? bytes[at + 2]! << 16 : 0);
    for (let j = 0; j < 8; j++) codes[i + j] = (word >> (3 * j)) & 7;
  }
}
