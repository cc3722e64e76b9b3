/** Sets the length of random tests: a quarter in `npm test`, the full length in `npm run test:long`. */
const SHARE = process.env.KVASIR_TEST_LENGTH === 'full' ? 1 : 0.25;

/** The part of `count` operations, requests or expected events that this run has, rounded up. */
export const part = (count: number): number => Math.ceil(count * SHARE);
