/**
 * Names and shapes of what a step feeds to the graph and fetches from it. Fed besides these are the pool (`k{l}`,
 * `ks{l}`,
 * `v{l}`, `vs{l}` of layer l) and the scratch of the prefill lane (`pk{l}`, `pv{l}`).
 */

/**
 * Dimensions: T tokens, the prefill lane's first, then the W of the paged lane; S rows with logits; N pages of L slots
 * with
 * P columns in all, at least one page; C rows of scratch, at least one. The feeds of a lane without tokens are ignored.
 * With gathered attention (see pagedLane) each token has a list of Q pages, and P = Q * L.
 */
export const FEEDS = {
  /** int64 [T]: token ids. */
  ids: 'ids',
  /** float32 [T, headSize / 2]: cosines and sines of the tokens' positions. */
  cos: 'cos',
  sin: 'sin',
  /**
   * float32 [1, 1, W, P + W], gathered [W, 1, 1, P + W]: 0 where a token may look, -Infinity elsewhere. Pool slots come
   * first, then the new tokens.
   */
  mask: 'mask',
  /** int64 [S]: rows whose logits are wanted. Padding rows select row 0. */
  logitRows: 'logitRows',
  /** bool: whether any logits are wanted. */
  hasLogits: 'hasLogits',
  /**
   * int64 [4]: paddings that add n rows of zeros after the T tokens, [0, 0, n, 0], and remove them again, [0, 0, -n,
   * 0].
   * Only where the number of rows must be a multiple (see paddedProducts in weightPlan). S is such a multiple then,
   * too.
   */
  pad: 'pad',
  crop: 'crop',
  // Shapes of the paged lane. The shape with gathered attention is in brackets.
  /** int64 [4]: kvHeads, groupSize, W, -1. */
  scoresShape: 'scoresShape',
  /** int64 [4]: 1, kvHeads, groupSize * W, -1. */
  rowsShape: 'rowsShape',
  /** int64 [2]: P, W. */
  split: 'split',
  /** int64 [4]: 1, kvHeads, groupSize * W, P (0, 0, 0, P: dimensions as they are). */
  pastShape: 'pastShape',
  /** int64: kvHeads, -1, N, L (W, kvHeads, -1, Q, L). */
  pagesShape: 'pagesShape',
  // Gathered attention:
  /** int64 [W, Q]: which of the N pages each token attends to, padded with the first one. */
  tokenPages: 'tokenPages',
  /** int64 [4]: W, 1, 1, 1. */
  ownShape: 'ownShape',
  /**
   * float32 [N, headSize, L] and [headSize, W]: cosines above sines, of the positions of the pool's slots and of the
   * new
   * tokens. Only where a layer has a large key bias.
   */
  poolRotations: 'poolRotations',
  newRotations: 'newRotations',
  // Only with an int8 pool, whose graph has a prefill lane:
  /** bool: all tokens are in the paged lane with shared attention, computed at once (shared) or in tiles (tiles). */
  shared: 'shared',
  tiles: 'tiles',
  /** bool: the tokens of the paged lane have gathered attention. */
  gathered: 'gathered',
  /**
   * bool: the step returns the attention that each column receives. All tokens are in the paged lane, of one sequence.
   */
  measures: 'measures',
  /** int64 [n]: which of the T tokens return their queries. */
  queryRows: 'queryRows',
  /** bool: whether each lane has tokens. */
  hasPrefill: 'hasPrefill',
  hasPaged: 'hasPaged',
  /** int64 [2]: T - W, W. */
  lanes: 'lanes',
  /**
   * int32 [1] and a scalar: the number of rows that the prefill lane attends to, less one, and that number. It counts
   * one
   * row more than the prompt has (see prefillLane).
   */
  lastRow: 'lastRow',
  numRows: 'numRows',
} as const;

/** logits [S, vocabSize] and the new rows in the layout of KvRows. The scales exist only with an int8 pool. */
export const FETCHES = {
  logits: 'logits',
  keys: 'keys',
  keyScales: 'keyScales',
  values: 'values',
  valueScales: 'valueScales',
} as const;

/**
 * Of a step that measures, with an int8 pool: float32 [2 * numLayers, kvHeads, P + W], layer by layer (see
 * pagedLaneMeasured).
 */
export const RECEIVED = 'received';

/**
 * With an int8 pool: float32 [numLayers, numHeads, n, headSize], the wanted queries. They are as the products with the
 * keys
 * take them, except that a large key bias is not in them.
 */
export const QUERIES = 'queries';
