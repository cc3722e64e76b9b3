/* Scores of queries with the keys of a block. Included by attention.h. */
#pragma once
#include "blocks.h"

#if defined(__AVX512VNNI__)
enum { QUERY_TILE = 6 };
#else
enum { QUERY_TILE = 1 };
#endif

/** Keys of a block for queries of the rows that see it. */
typedef struct {
  Queries queries;
  /** Padded size of a head. */
  int size, wide;
  /** [size / 4][4] vectors. */
  const int8_t *mixed;
  v16f keyScales[4];
  /** Of the block in layers with a key bias, or null: see bias_scores. */
  const float *rotations;
  int pageSlots, numSlots;
  /** Null: all rows see all slots. */
  const Sight *sight;
  int queriesPerRow;
  /** [queries][64] in the order of mix(), and [queries][16]. */
  float *scores, *most;
} KeyBlock;

/** Adds q . R(p) b for the 16 slots of each vector. The bias of a query is the coefficients of cosines and sines. */
ALWAYS void bias_scores(const KeyBlock *k, int query, v16f scores[QUERY_TILE][4], const int n) {
  const float *bias = k->queries.bias + (size_t)query * k->wide, *row = k->rotations;
  float part[64] = {0};
  v16f sums[QUERY_TILE][4];
  UNROLL for (int i = 0; i < n; i++)
    UNROLL for (int j = 0; j < 4; j++) sums[i][j] = (v16f){};
  for (int d = 0; d < k->size; d++, row += k->pageSlots) {
    if (k->numSlots < 64) memcpy(part, row, 4 * k->numSlots);
    const float *at = k->numSlots < 64 ? part : row;
    UNROLL for (int j = 0; j < 4; j++) {
      const v16f turn = load_f(at + 16 * j);
      UNROLL for (int i = 0; i < n; i++) sums[i][j] = fma_f(turn, splat_f(bias[(size_t)i * k->wide + d]), sums[i][j]);
    }
  }
  UNROLL for (int i = 0; i < n; i++) {
    v16f moved[4];
    float all[64];
    for (int j = 0; j < 4; j++) store_f(all + 16 * j, sums[i][j]);
    mixed_f(all, moved);
    UNROLL for (int j = 0; j < 4; j++) scores[i][j] += moved[j];
  }
}

/** Scores of n queries from `query` on. */
ALWAYS void score_queries(const KeyBlock *k, int query, const int n) {
  const size_t wide = k->wide;
  const int size = k->size, perRow = k->queriesPerRow;
  const int8_t *codes = k->queries.codes + query * wide, *mixed = k->mixed;
  const Sight *const sight = k->sight;
  float *scores = k->scores + (size_t)64 * query, *mosts = k->most + (size_t)16 * query;
  v16i sums[QUERY_TILE][4];
  v16f all[QUERY_TILE][4];
  UNROLL for (int i = 0; i < n; i++)
    UNROLL for (int j = 0; j < 4; j++) sums[i][j] = splat_i(-BIAS * k->queries.sums[query + i]);
  for (long d = 0; d < size; d += 4, mixed += 256)
    UNROLL for (int i = 0; i < n; i++) {
      const int32_t four_codes = four(codes + i * wide + d);
      UNROLL for (int j = 0; j < 4; j++) sums[i][j] = dot(sums[i][j], load_b(mixed + 64 * j), four_codes);
    }
  UNROLL for (int i = 0; i < n; i++) {
    const float scale = k->queries.scales[query + i];
    UNROLL for (int j = 0; j < 4; j++) all[i][j] = to_f(sums[i][j]) * k->keyScales[j] * scale;
  }
  if (k->rotations) bias_scores(k, query, all, n);
  UNROLL for (int i = 0; i < n; i++) {
    v16f most = load_f(mosts + 16 * i);
    UNROLL for (int j = 0; j < 4; j++) {
      v16f score = all[i][j];
      if (sight) score = select_f(sees(sight, j, (query + i) / perRow), score, splat_f(-__builtin_inff()));
      most = max_f(most, score);
      store_f(scores + 64 * i + 16 * j, score);
    }
    store_f(mosts + 16 * i, most);
  }
}

/** Mixes the keys of a block, and fetches those of the next one. */
ALWAYS void mix_keys(const int8_t *keys, const int8_t *next, int size, size_t L, int numSlots, int8_t *mixed) {
  for (int d = 0; d < size; d += 4, mixed += 256, keys += 4 * L, next += 4 * L) {
    v64b k[4], out[4];
    UNROLL for (int i = 0; i < 4; i++) {
      __builtin_prefetch(next + i * L);
      k[i] = prepare(load_part(keys + i * L, numSlots));
    }
    mix(k[0], k[1], k[2], k[3], out);
    memcpy(mixed, out, 256);
  }
}

/** Widens the largest scale of the values that each row sees. largest: [rows][16]. */
static void find_largest_scales(const Seen *seen, const Sight *sight, const float *scales, float *largest) {
  v16f values[4];
  mixed_scales(scales, seen->block->size, values);
  for (int row = 0; row < seen->endRow - seen->firstRow; row++) {
    v16f most = load_f(largest + 16 * row);
    for (int j = 0; j < 4; j++)
      most = max_f(most, sight ? select_f(sees(sight, j, row), values[j], splat_f(0)) : values[j]);
    store_f(largest + 16 * row, most);
  }
}

static const int8_t *keys_of(const Attend *a, const Block *block) {
  const size_t head = (size_t)block->place * a->model->kvHeads + a->item->kvHead;
  return a->rows->keys + head * a->model->headSize * a->pool->pageSlots + block->slot;
}

/**
 * Scores of the queries that see a block. most: [queries of the item][16], before they are capped. largest: [rows of
 * the item][16].
 */
static void score_block(const Attend *a, const Seen *seen, const Block *next, float *scores, float *most,
                        float *largest, int8_t *mixed) {
  const Block *block = seen->block;
  const int D = a->model->headSize, L = a->pool->pageSlots, G = a->model->heads / a->model->kvHeads;
  const size_t head = (size_t)block->place * a->model->kvHeads + a->item->kvHead;
  const int row = seen->firstRow - a->item->firstRow, Q = (seen->endRow - seen->firstRow) * G;
  Sight sight;
  if (!block->isFull) mixed_sight(seen, &sight);
  KeyBlock k = {.queries = queries_from(&a->queries, (size_t)row * G, padded(D, 64)),
                .size = D,
                .wide = padded(D, 64),
                .mixed = mixed,
                .pageSlots = L,
                .numSlots = block->size,
                .sight = block->isFull ? 0 : &sight,
                .queriesPerRow = G,
                .scores = scores + seen->scores,
                .most = most + (size_t)16 * G * row};
  if (a->layer->keyBias) k.rotations = a->pool->rotations + (size_t)block->place * D * L + block->slot;
  if (block->size == 64) mix_keys(keys_of(a, block), keys_of(a, next), D, L, 64, mixed);
  else mix_keys(keys_of(a, block), keys_of(a, next), D, L, block->size, mixed);
  mixed_scales(a->rows->keyScales + head * L + block->slot, block->size, k.keyScales);
  find_largest_scales(seen, k.sight, a->rows->valueScales + head * L + block->slot, largest + (size_t)16 * row);
  for (int q = 0; q < Q;) {
    const int n = tile_of(Q - q, QUERY_TILE);
    if (n == 6) score_queries(&k, q, QUERY_TILE < 6 ? 1 : 6);
    else if (n == 4) score_queries(&k, q, QUERY_TILE < 4 ? 1 : 4);
    else if (n == 3) score_queries(&k, q, QUERY_TILE < 3 ? 1 : 3);
    else if (n == 2) score_queries(&k, q, QUERY_TILE < 2 ? 1 : 2);
    else score_queries(&k, q, 1);
    q += n;
  }
  if (a->model->scoreCap > 0) limit(k.scores, 64 * Q, a->model->scoreCap * LOG2_E);
}
