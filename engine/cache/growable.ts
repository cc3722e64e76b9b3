/**
 * Arrays that grow and shrink where they are: growing copies nothing, and the old size is not held beside the new one. Only
 * addresses are set aside for the most that may come; memory is taken for what is used.
 */

/** A buffer of `bytes` bytes that may grow up to `mostBytes`; where no addresses are to be had for that, one of fixed size. */
export function growable(bytes: number, mostBytes: number): ArrayBuffer {
  if (mostBytes > bytes) {
    try {
      return new ArrayBuffer(bytes, { maxByteLength: mostBytes });
    } catch (error) {
      // Every runtime has another bound.
      if (!(error instanceof RangeError)) throw error;
    }
  }
  return new ArrayBuffer(bytes);
}

/** Whether a buffer can take this size in place. */
export function holds(buffer: ArrayBuffer, bytes: number): boolean {
  return buffer.byteLength === bytes || (buffer.resizable && bytes <= buffer.maxByteLength);
}
