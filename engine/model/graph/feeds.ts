/**
 * Names and shapes of the feeds and fetches of the step graph. Does not list the feeds by layer l: the pool (`k{l}`,
 * `ks{l}`, `v{l}`, `vs{l}`) and the scratch of the prefill lane (`pk{l}`, `pv{l}`).
 */

/**
 * T: tokens, first those of the prefill lane, then the W tokens of the paged lane. S: rows with logits. N: pages, at
 * least one, of L slots. P: columns of the pool, N * L; with gathered attention Q * L, because each token has a list of
 * Q pages (see pagedLane.ts). C: rows of scratch, at least one. The feeds of a lane without tokens are ignored.
 */
export const FEEDS = {
  /** int64 [T]: token ids. */
  ids: 'ids',
  /** float32 [T, headSize / 2]: cosines and sines of the tokens' positions. */
  cos: 'cos',
  sin: 'sin',
  /**
   * float32 [1, 1, W, P + W], gathered [W, 1, 1, P + W]: 0 for columns that a token sees, otherwise -Infinity. First
   * the columns of the pool, then the new tokens.
   */
  mask: 'mask',
  // Only if layers have a sliding window: as mask, but within the window; and as cos and sin, if they have their own rope.
  windowMask: 'windowMask',
  localCos: 'localCos',
  localSin: 'localSin',
  /** int64 [S]: rows that need logits. Padding rows select row 0. */
  logitRows: 'logitRows',
  /** bool: whether any row needs logits. */
  hasLogits: 'hasLogits',
  /**
   * int64 [4]: paddings that add n rows of zeros after the T tokens ([0, 0, n, 0]) and remove them again ([0, 0, -n,
   * 0]). Only if the number of rows must be a multiple (see paddedProducts). Then S is such a multiple, too.
   */
  pad: 'pad',
  crop: 'crop',
  // Shapes of the paged lane, with those of gathered attention in brackets:
  /** int64 [4]: kvHeads, groupSize, W, -1. */
  scoresShape: 'scoresShape',
  /** int64 [4]: 1, kvHeads, groupSize * W, -1. */
  rowsShape: 'rowsShape',
  /** int64 [2]: P, W. */
  split: 'split',
  /** int64 [4]: 1, kvHeads, groupSize * W, P (0, 0, 0, P; a 0 keeps the dimension). */
  pastShape: 'pastShape',
  /** int64: kvHeads, -1, N, L (W, kvHeads, -1, Q, L). */
  pagesShape: 'pagesShape',
  // Gathered attention:
  /** int64 [W, Q]: the pages that each token attends to, among the N pages. Padded with page 0. */
  tokenPages: 'tokenPages',
  /** int64 [4]: W, 1, 1, 1. */
  ownShape: 'ownShape',
  /**
   * float32 [N, headSize, L] and [headSize, W]: cosines, then sines, of the positions of the pool slots and of the new
   * tokens. Only if a layer has a large key bias.
   */
  poolRotations: 'poolRotations',
  newRotations: 'newRotations',
  // Only with an int8 pool:
  /** bool: all tokens are in the paged lane with shared attention, computed as a whole (shared) or in tiles (tiles). */
  shared: 'shared',
  tiles: 'tiles',
  /** bool: the tokens of the paged lane have gathered attention. */
  gathered: 'gathered',
  /** bool: the step returns the attention that columns receive. All tokens are in the paged lane, of one sequence. */
  measures: 'measures',
  /** int64 [n]: the tokens that return their queries, among the T tokens. */
  queryRows: 'queryRows',
  /** bool: whether the lane has tokens. */
  hasPrefill: 'hasPrefill',
  hasPaged: 'hasPaged',
  /** int64 [2]: T - W, W. */
  lanes: 'lanes',
  /**
   * int32 [1] and int32 []: the number of rows that the prefill lane attends to, minus 1, and that number. It includes
   * a row of padding (see prefillLane.ts).
   */
  lastRow: 'lastRow',
  numRows: 'numRows',
} as const;

/** logits [S, vocabSize], and the new rows in the layout of KvRows. Scales exist with an int8 pool only. */
export const FETCHES = {
  logits: 'logits',
  keys: 'keys',
  keyScales: 'keyScales',
  values: 'values',
  valueScales: 'valueScales',
} as const;

/** With an int8 pool, of a step that measures: float32 [2 * numLayers, kvHeads, P + W] (see pagedLaneMeasured). */
export const RECEIVED = 'received';

/**
 * With an int8 pool: float32 [numLayers, numHeads, n, headSize], the queries of `queryRows` as they are multiplied with
 * the keys, without the effect of a large key bias.
 */
export const QUERIES = 'queries';
