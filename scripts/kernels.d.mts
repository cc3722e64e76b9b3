/** engine/cache/codecs/kernels/ as a WebAssembly module. */
export function compileKernels(): Promise<Uint8Array>;
