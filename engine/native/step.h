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

typedef struct {
  /** [hidden], padded to a multiple of GROUP. */
  const float *norm1, *norm2;
  /** [heads + kvHeads, headSize], or null. */
  const float *qkNorm;
  /** [kvHeads, headSize]: the key bias that is added to the scores instead of the keys, or null. */
  const float *keyBias;
  Linear qkv, o, gate, up, down;
} Layer;

typedef struct {
  int numLayers, hidden, heads, kvHeads, headSize, ffn, vocab;
  float epsilon;
  /** [vocab, hidden] codes of 16 bits and their scales [vocab]. */
  const int16_t *embedding;
  const float *embeddingScales;
  const float *norm;
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
  /** First row of the span that sees any slot. */
  int first;
  /** First row of the span that sees the slot. INT32_MAX: none. */
  int32_t from[64];
} Block;

typedef struct {
  int numRows, numSpans, numLogits, numQueries;
  const int32_t *ids;
  /** [numRows, headSize / 2]. */
  const float *cos, *sin;
  /** [numRows]: place * L + slot of the new row. */
  const int32_t *slots;
  const Span *spans;
  const Block *blocks;
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
