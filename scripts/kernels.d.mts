/** Compiles engine/kv/approx/codecs/kernels/ to a WebAssembly module. */
export function compileKernels(): Promise<Uint8Array>;
