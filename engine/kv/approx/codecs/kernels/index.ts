/** All kernels. Arguments are addresses, which callers see to, and counts; nothing here allocates or keeps anything. */
export { packFour, packTwo, unpackFour, unpackTwo } from './evenBits';
export { fp8Decode, fp8Encode } from './fp8';
export { gradedDecode, gradedEncode } from './graded';
export { hadamard } from './hadamard';
export { int4Decode, int4Encode } from './int4';
export { kiviDecode, kiviEncode } from './kivi';
export { kvquantBins, kvquantDecode } from './kvquant';
export { fitLevels } from './levels';
export { nvfp4Decode, nvfp4Encode } from './nvfp4';
export { rotate } from './rotation';
export { channelsToFloats, floatsToChannels, floatsToRows, rowsToFloats } from './rows';
export { packThree, unpackThree } from './threeBits';
export { transpose } from './transpose';
