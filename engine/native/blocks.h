/* Who attends to what: items of rows, and the blocks that they see. Included by scores.h and shares.h. */
#pragma once
#include "products.h"

/** Coded queries of a step: [kvHeads][rows][heads / kvHeads]. Consecutive rows of one KV head lie together. */
typedef struct {
  /** [..][wide], wide = headSize padded to 64. */
  int8_t *codes;
  float *scales;
  int32_t *sums;
  /** [..][wide]: coefficients of the cosines and sines of positions, for layers with a key bias. */
  float *bias;
} Queries;

/** Rows firstRow .. endRow-1 of the step for one KV head, of spans whose first `numShared` blocks are the same. */
typedef struct {
  int firstSpan, endSpan, numShared;
  int firstRow, endRow;
  int kvHead;
  /** 64 for each query and block that its row sees. scoresAt: where they begin if all items keep their scores. */
  size_t numScores, scoresAt;
} Item;

/** An item in a layer. */
typedef struct {
  const Model *model;
  const Pool *pool;
  const PoolLayer *rows;
  const Layer *layer;
  const View *view;
  const Item *item;
  /** From the first query of the item on. */
  Queries queries;
  float *out;
  size_t outStride;
  /** Of this layer and head: [64 * blocks], or null. */
  float *most, *sum;
} Attend;

/**
 * A block and the rows firstRow .. endRow-1 of the step that see it, from row `inSpan` of their span on. Their scores
 * begin at `scores`.
 */
typedef struct {
  const Block *block;
  int firstRow, endRow, inSpan;
  size_t scores;
} Seen;

/** Walks over the blocks of an item: first the shared ones, then those of each span. */
typedef struct {
  int span, next;
  size_t scores;
} Walk;

ALWAYS Walk walk_from_start(const Item *item) { return (Walk){item->firstSpan - 1, 0, 0}; }

/** Finds the next block. Leaves out blocks that no row sees. Returns 0 at the end. */
static int walk_on(const Model *m, const View *view, const Item *item, Walk *w, Seen *seen) {
  for (;; w->span++, w->next = item->numShared) {
    const int isShared = w->span < item->firstSpan;
    const Span *span = view->spans + (isShared ? item->firstSpan : w->span);
    const int end = span->firstRow + span->numRows;
    seen->firstRow = isShared || item->firstRow > span->firstRow ? item->firstRow : span->firstRow;
    seen->endRow = isShared || item->endRow < end ? item->endRow : end;
    seen->inSpan = seen->firstRow - span->firstRow;
    while (w->next < (isShared ? item->numShared : span->numBlocks)) {
      seen->block = view->blocks + span->firstBlock + w->next++;
      if (!isShared && (seen->block->first >= seen->endRow - span->firstRow || seen->block->end <= seen->inSpan))
        continue;
      seen->scores = w->scores;
      w->scores += (size_t)64 * (seen->endRow - seen->firstRow) * (m->heads / m->kvHeads);
      return 1;
    }
    if (w->span >= item->endSpan - 1) return 0;
  }
}

ALWAYS Queries queries_from(const Queries *q, size_t at, int wide) {
  return (Queries){q->codes + at * wide, q->scales + at, q->sums + at, q->bias + at * wide};
}

/** Codes a query, rotated and scaled. Scores are to be powers of 2 instead of e. */
static void code_query(const Model *m, const Layer *layer, const Queries *queries, size_t at, int kvHead,
                       const float *query) {
  const int D = m->headSize, wide = padded(D, 64), half = D / 2;
  int8_t *codes = queries->codes + at * wide;
  float row[padded(D, 16)];
  memset(row, 0, sizeof row);
  memcpy(row, query, 4 * D);
  code_part(row, padded(D, 16), codes, 4, queries->scales + at, queries->sums + at);
  queries->scales[at] *= LOG2_E;
  if (!layer->keyBias) return;
  // q . R(p) b = sum over i of cos(p t_i) (q_i b_i + q_i+h b_i+h) + sin(p t_i) (q_i+h b_i - q_i b_i+h).
  const float *b = layer->keyBias + (size_t)kvHead * D;
  float *bias = queries->bias + at * wide;
  for (int i = 0; i < half; i++) {
    bias[i] = (query[i] * b[i] + query[i + half] * b[i + half]) * LOG2_E;
    bias[half + i] = (query[i + half] * b[i] - query[i] * b[i + half]) * LOG2_E;
  }
}

/** Of each slot of a block, in the order of mix(): the first row of `seen` that sees it, and that behind the last one. */
typedef struct {
  v16i from[4], until[4];
} Sight;

ALWAYS void mixed_sight(const Seen *seen, Sight *out) {
  mixed_i(seen->block->from, out->from);
  if (seen->block->until) mixed_i(seen->block->until, out->until);
  for (int j = 0; j < 4; j++) {
    out->from[j] -= seen->inSpan;
    out->until[j] = seen->block->until ? out->until[j] - seen->inSpan : splat_i(INT32_MAX);
  }
}

/** Which slots of vector j a row sees. */
ALWAYS v16i sees(const Sight *sight, int j, int row) { return (sight->from[j] <= row) & (sight->until[j] > row); }

/** How many of `left` rows to compute at once: 6, 4, 3, 2 or 1, so that no small rest is left. */
ALWAYS int tile_of(int left, int most) {
  if (most == 1 || left == 1) return 1;
  if (left == 7 || left == 8) return 4;
  return left >= 6 ? 6 : left == 5 ? 3 : left;
}

/** 64 bytes of which `n` are there. */
ALWAYS v64b load_part(const int8_t *p, int n) {
  if (n >= 64) return load_b(p);
  int8_t bytes[64] = {0};
  if (n > 0) memcpy(bytes, p, n);
  return load_b(bytes);
}

/** The scales of a block in the order of mix(). */
ALWAYS void mixed_scales(const float *scales, int size, v16f out[4]) {
  if (size == 64) {
    mixed_f(scales, out);
    return;
  }
  float parts[64] = {0};
  memcpy(parts, scales, 4 * size);
  mixed_f(parts, out);
}
