/** How long random tests run: a quarter of their length in `npm test`, all of it in `npm run test:long`. */
const SHARE = process.env.KVASIR_TEST_LENGTH === 'full' ? 1 : 0.25;

/** The share of `count` operations, requests or expected events that this run has, rounded up. */
export const part = (count: number): number => Math.ceil(count * SHARE);
