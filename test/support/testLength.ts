/** Sets the length of random tests: a part in `npm test`, the full length in `npm run test:long`. */
const IS_FULL = process.env.KVASIR_TEST_LENGTH === 'full';

/** The part of `count` operations, requests or expected events that this run has, rounded up: an eighth, or all. */
export const part = (count: number): number => Math.ceil(IS_FULL ? count : count / 8);
/** The same for tests whose operations are slow: a sixteenth, or all. */
export const smallPart = (count: number): number => Math.ceil(IS_FULL ? count : count / 16);
