/**
 * All kernels. Arguments are addresses, which the caller lays out, and counts. Kernels allocate nothing and keep
 * nothing.
 */
export { gradedDecode, gradedEncode } from './graded';
export { kiviDecode, kiviEncode } from './kivi';
export { nvfp4Decode, nvfp4Encode } from './nvfp4';
export { hadamard, rotate } from './rotation';
export { channelsToFloats, floatsToChannels, floatsToRows, rowsToFloats, transpose } from './rows';
