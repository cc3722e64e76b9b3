/* One step of a model over the KV pool. All sizes and pointers are checked by the caller (see plan.c). */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "processor.h"
#include "threads.h"

/** Outputs of a group: one vector of sums. */
enum { GROUP = 16, BLOCK4 = 128 };

/**
 * A linear layer. Weights of `rows` outputs in groups of GROUP, padded with zeros.
 * 8 bits: [groups, width / 4, GROUP, 4] codes, scales [groups * GROUP]. `width` is padded to a multiple of 16.
 * 4 bits: [groups, blocks, BLOCK4 / 8, GROUP, 4] bytes. Byte j of vector v has the weight 8v + j of the block in its
 * low half and 8v + 4 + j in its high half, plus 8. Scales [groups, blocks, GROUP].
 */
typedef struct {
  int bits, groups, width;
  const int8_t *weights;
  const float *scales;
  /** [groups * GROUP], or null. */
  const float *bias;
} Linear;

/** [hidden], padded to a multiple of GROUP. No weight: no norm. With a bias, the mean is subtracted first. */
typedef struct {
  const float *weight, *bias;
} Norm;

/** The cosines and sines of a layer. */
enum { NO_ROPE, MAIN_ROPE, LOCAL_ROPE };

typedef struct {
  /** Of what attention and the feed-forward layers read, and of what they add. */
  Norm norm1, norm1After, norm2, norm2After;
  /** [heads + kvHeads, headSize], or null. */
  const float *qkNorm;
  /** [heads * headSize] and [kvHeads * headSize], or null: norms of all heads together. */
  const float *qNorm, *kNorm;
  /** [kvHeads, headSize]: the key bias that is added to the scores instead of the keys, or null. */
  const float *keyBias;
  int rope;
  /** Whether a row sees only the last Model.window tokens. */
  int hasWindow;
  /**
   * Without weights of a gate, the activation is that of `up`. With those of a router, there are experts: gate, up and
   * down are those of the first one, and the others follow them.
   */
  Linear qkv, o, gate, up, down;
  /** Twice the experts, each padded to whole groups: of the weights, and of what these codes leave. */
  Linear router;
} Layer;

typedef struct {
  int numLayers, hidden, heads, kvHeads, headSize, ffn, vocab;
  /** Experts of a layer, those that compute a row, and their inner size. 0: no layer has experts. */
  int numExperts, numUsed, expertSize;
  /** Whether the shares of a row are among its experts, not among all. */
  int isNormed;
  /** Tokens of the window: the own one and those just before it. 0: no layer has one. */
  int window;
  /** Whether any layer has LOCAL_ROPE. */
  int hasLocalRope;
  /** Whether the activation is a GELU instead of SiLU. */
  int isGelu;
  float epsilon;
  /** c of c * tanh(x / c), for scores and logits. 0: none. */
  float scoreCap, logitCap;
  /** [vocab, hidden] codes of 16 bits and their scales [vocab]. */
  const int16_t *embedding;
  const float *embeddingScales;
  Norm norm;
  Linear head;
  Layer *layers;
} Model;

/** The arrays of one layer of the pool: keys [places, kvHeads, headSize, L], values [places, kvHeads, L, headSize]. */
typedef struct {
  int8_t *keys, *values;
  float *keyScales, *valueScales;
} PoolLayer;

typedef struct {
  int numPlaces, pageSlots;
  PoolLayer *layers;
  /** [places, headSize, L]: cosines and sines of the position of each slot, or null. Used by layers with keyBias. */
  const float *rotations;
} Pool;

/** Consecutive rows of one sequence. */
typedef struct {
  int firstRow, numRows;
  int firstBlock, numBlocks;
} Span;

/** Up to 64 consecutive slots of a place. */
typedef struct {
  int place, slot, size;
  /** Whether each row of the span sees all 64 slots; else see `from`. */
  int isFull;
  /** First row of the span that sees any slot, and the row behind the last one. */
  int first, end;
  /** First row of the span that sees the slot. INT32_MAX: none. */
  int32_t from[64];
  /** [64]: row behind the last one that sees the slot. Null: all from the first one on see it. */
  const int32_t *until;
} Block;

/** What the rows of a step see in a layer: the whole context, or what is within the window. */
typedef struct {
  const Span *spans;
  const Block *blocks;
} View;
enum { WHOLE, NEAR, NUM_VIEWS };

typedef struct {
  int numRows, numSpans, numLogits, numQueries;
  const int32_t *ids;
  /** [numRows, headSize / 2], and behind them those for LOCAL_ROPE. */
  const float *cos, *sin;
  /** [numRows]: place * L + slot of the new row. */
  const int32_t *slots;
  /** NEAR only if a layer has a window. With `received`, both have the same blocks. */
  View views[NUM_VIEWS];
  /** Rows whose logits are wanted, ascending. */
  const int32_t *logitRows;
  /** Rows whose queries are returned. */
  const int32_t *queryRows;
  /** [numLogits, vocab]; memory for [numLogits, head.groups * GROUP]. */
  float *logits;
  /** [numLayers, heads, numQueries, headSize], or null. */
  float *queries;
  /**
   * [2, numLayers, kvHeads, 64 * number of blocks]: the most attention that each slot receives and the sum, or null.
   * Only with one span.
   */
  float *received;
} Step;

/** Buffers that are kept between steps. */
typedef struct Workspace Workspace;

typedef struct {
  const char *name;
  Features needs;
  /** Returns 0, or 1 without memory; then nothing was written. */
  int (*run)(const Model *, const Pool *, const Step *, Threads *, Workspace *);
} Kernels;

Workspace *workspace_open(int numThreads);
void workspace_close(Workspace *);
/** `size` bytes in `slot`, aligned to 64, with what was there if it was large enough. Null without memory. */
void *workspace_get(Workspace *, int slot, size_t size);

int kernels_run_on(const Kernels *, const Features *);
/** Null if the processor cannot run them or this build has none of that name. */
const Kernels *kernels_named(const char *name);
