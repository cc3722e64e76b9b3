/* Attention of a few rows of one sequence over blocks of the pool. Included by step.c. */
#pragma once
#include "products.h"

/*
 * The result of a row depends on no order: the largest score comes first, then codes of probabilities are added as
 * integers. So the same context in other slots, chunks or batches gives the same bits.
 */

/** Unit of the sum of powers, which is exact as an integer: 16 per lane and block are below 2^31. */
static const float POWER_UNIT = 67108864.f;
/** Lower bound of the largest scale, for a row that sees only zeros. */
static const float TINY = 1e-30f;

#if defined(__AVX512VNNI__)
enum { QUERY_TILE = 4, SHARE_TILE = 2 };
#else
enum { QUERY_TILE = 1, SHARE_TILE = 1 };
#endif

typedef struct {
  const Model *model;
  const Pool *pool;
  const PoolLayer *rows;
  const Layer *layer;
  const Span *span;
  const Block *blocks;
  /** Rows of the span. */
  int firstRow, endRow;
  int kvHead;
  /** [row of the step][heads * headSize], rotated and scaled. */
  const float *queries;
  size_t queryStride;
  float *out;
  size_t outStride;
  /** Of this layer and head: [64 * blocks], or null. */
  float *most, *sum;
} Attend;

/** Memory of one thread. Q queries, B blocks, D = headSize padded to 64. */
typedef struct {
  /** [Q][D], [Q], [Q]. */
  int8_t *codes;
  float *scales;
  int32_t *sums;
  /** [Q][D]: see bias_scores. */
  float *bias;
  /** [B][Q][64] in the order of mix(). */
  float *scores;
  /** [Q]. */
  float *most;
  /** [rows]. */
  float *largest;
  /** [Q][2][D]: sums of products of both codes, in the order of mix(). */
  int32_t *products;
  /** [Q][2]: sums of both codes. [Q]: sum of powers. */
  int64_t *powers;
  int32_t *shareSums;
  /** [Q][2][64] codes of one block. */
  int8_t *shares;
  /** [D / 4][4] or [D / 64][16][4] vectors of one block. */
  int8_t *mixed;
} AttendMemory;

/** 64 bytes of which `n` are there. */
ALWAYS v64b load_part(const int8_t *p, int n) {
  if (n >= 64) return load_b(p);
  int8_t bytes[64] = {0};
  if (n > 0) memcpy(bytes, p, n);
  return load_b(bytes);
}

/** Adds q . R(p) b for the 16 slots of each vector. `bias` [D] are the coefficients of cosines and sines. */
static void bias_scores(const float *bias, const float *rotations, int L, int size, int D, v16f scores[4]) {
  float sums[64];
  v16f parts[4] = {};
  if (size == 64) {
    for (int d = 0; d < D; d++)
      for (int i = 0; i < 4; i++) parts[i] += load_f(rotations + (size_t)d * L + 16 * i) * bias[d];
  } else {
    for (int d = 0; d < D; d++) {
      float row[64] = {0};
      memcpy(row, rotations + (size_t)d * L, 4 * size);
      for (int i = 0; i < 4; i++) parts[i] += load_f(row + 16 * i) * bias[d];
    }
  }
  for (int i = 0; i < 4; i++) store_f(sums + 16 * i, parts[i]);
  v16f moved[4];
  mixed_f(sums, moved);
  for (int j = 0; j < 4; j++) scores[j] += moved[j];
}

/** Integer scores of n queries with 64 mixed keys. */
ALWAYS void score_tile(const int8_t *mixed, const int8_t *codes, int D, v16i sums[][4], const int n) {
  for (int q = 0; q < n; q++)
    for (int j = 0; j < 4; j++) sums[q][j] = (v16i){};
  for (int d = 0; d < D / 4; d++, mixed += 256) {
    v64b k[4];
    for (int j = 0; j < 4; j++) k[j] = load_b(mixed + 64 * j);
#pragma clang loop unroll(full)
    for (int q = 0; q < n; q++) {
      const int32_t four_codes = four(codes + (size_t)q * padded(D, 64) + 4 * d);
      for (int j = 0; j < 4; j++) sums[q][j] = dot(sums[q][j], k[j], four_codes);
    }
  }
}

static void score_block(const Attend *a, const Block *block, int Q, int G, float *scores, AttendMemory *m) {
  const int D = a->model->headSize, L = a->pool->pageSlots, numRows = a->endRow - a->firstRow;
  const size_t head = (size_t)block->place * a->model->kvHeads + a->kvHead;
  const int8_t *keys = a->rows->keys + head * D * L + block->slot;
  for (int d = 0; d < D / 4; d++) {
    v64b k[4];
    for (int i = 0; i < 4; i++) k[i] = prepare(load_part(keys + (size_t)(4 * d + i) * L, block->size));
    v64b out[4];
    mix(k[0], k[1], k[2], k[3], out);
    memcpy(m->mixed + 256 * d, out, 256);
  }
  float parts[64] = {0};
  v16f keyScales[4], valueScales[4];
  memcpy(parts, a->rows->keyScales + head * L + block->slot, 4 * block->size);
  mixed_f(parts, keyScales);
  memcpy(parts, a->rows->valueScales + head * L + block->slot, 4 * block->size);
  mixed_f(parts, valueScales);
  v16i from[4];
  mixed_i(block->from, from);
  for (int row = 0; row < numRows; row++) {
    v16f largest = splat_f(m->largest[row]);
    for (int j = 0; j < 4; j++)
      largest = max_f(largest, block->isFull ? valueScales[j]
                                             : select_f(from[j] <= a->firstRow + row, valueScales[j], splat_f(0)));
    m->largest[row] = largest_of(largest);
  }
  const float *rotations =
      a->layer->keyBias ? a->pool->rotations + (size_t)block->place * D * L + block->slot : 0;
  for (int q = 0; q < Q;) {
    v16i sums[QUERY_TILE][4];
    const int n = Q - q >= QUERY_TILE ? QUERY_TILE : 1;
    const int8_t *codes = m->codes + (size_t)q * padded(D, 64);
    if (n == QUERY_TILE) score_tile(m->mixed, codes, D, sums, QUERY_TILE);
    else score_tile(m->mixed, codes, D, sums, 1);
    for (int i = 0; i < n; i++, q++) {
      v16f s[4], most = splat_f(m->most[q]);
      for (int j = 0; j < 4; j++) s[j] = to_f(sums[i][j] - BIAS * m->sums[q]) * keyScales[j] * m->scales[q];
      if (rotations) bias_scores(m->bias + (size_t)q * padded(D, 64), rotations, L, block->size, D, s);
      for (int j = 0; j < 4; j++) {
        if (!block->isFull) s[j] = select_f(from[j] <= a->firstRow + q / G, s[j], splat_f(-__builtin_inff()));
        most = max_f(most, s[j]);
        store_f(scores + (size_t)q * 64 + 16 * j, s[j]);
      }
      m->most[q] = largest_of(most);
    }
  }
}

/** Sums of products of both codes of n queries with the mixed values of 64 slots and 64 columns. */
ALWAYS void share_tile(const int8_t *mixed, const int8_t *shares, int32_t *products, int D, const int n) {
  v16i sums[n][2][4];
  for (int q = 0; q < n; q++)
    for (int c = 0; c < 2; c++)
      for (int j = 0; j < 4; j++) sums[q][c][j] = load_i(products + (size_t)(2 * q + c) * D + 16 * j);
  for (int s = 0; s < 16; s++, mixed += 256) {
    v64b v[4];
    for (int j = 0; j < 4; j++) v[j] = load_b(mixed + 64 * j);
#pragma clang loop unroll(full)
    for (int q = 0; q < n; q++)
#pragma clang loop unroll(full)
      for (int c = 0; c < 2; c++) {
        const int32_t codes = four(shares + (2 * q + c) * 64 + 4 * s);
        for (int j = 0; j < 4; j++) sums[q][c][j] = dot(sums[q][c][j], v[j], codes);
      }
  }
  for (int q = 0; q < n; q++)
    for (int c = 0; c < 2; c++)
      for (int j = 0; j < 4; j++) store_i(products + (size_t)(2 * q + c) * D + 16 * j, sums[q][c][j]);
}

static void share_block(const Attend *a, const Block *block, int Q, int G, const float *scores, AttendMemory *m) {
  const int D = a->model->headSize, wide = padded(D, 64), L = a->pool->pageSlots;
  const size_t head = (size_t)block->place * a->model->kvHeads + a->kvHead;
  const int8_t *values = a->rows->values + (head * L + block->slot) * D;
  float parts[64] = {0};
  v16f valueScales[4];
  memcpy(parts, a->rows->valueScales + head * L + block->slot, 4 * block->size);
  mixed_f(parts, valueScales);
  for (int q = 0; q < Q; q++) {
    v16i powers = {}, high = {}, low = {};
    const v16f most = splat_f(m->most[q]);
    const float inverse = 1 / m->largest[q / G];
    for (int j = 0; j < 4; j++) {
      v16f e = exp_f(load_f(scores + (size_t)q * 64 + 16 * j) - most);
      powers += truncate(e * POWER_UNIT + 0.5f);
      v16f share = e * (valueScales[j] * inverse);
      // A slot that the row does not see may hold anything, and its scale too.
      if (!block->isFull) share = select_f(e > 1e-37f, share, splat_f(0));
      const v16i first = nearest(share * 127.f);
      const v16i second = nearest((share - to_f(first) * (1.f / 127)) * (127.f * 254));
      const v16b highBytes = __builtin_convertvector(first, v16b), lowBytes = __builtin_convertvector(second, v16b);
      high += first;
      low += second;
      // Lane l of vector j holds the slots 16l + 4j .., which are group 4l + j of four.
      for (int l = 0; l < 4; l++) {
        memcpy(m->shares + (2 * q) * 64 + 4 * (4 * l + j), (const int8_t *)&highBytes + 4 * l, 4);
        memcpy(m->shares + (2 * q + 1) * 64 + 4 * (4 * l + j), (const int8_t *)&lowBytes + 4 * l, 4);
      }
    }
    int64_t sum = 0;
    for (int i = 0; i < 16; i++) sum += powers[i];
    m->powers[q] += sum;
    m->shareSums[2 * q] += sum_of(high);
    m->shareSums[2 * q + 1] += sum_of(low);
  }
  for (int c = 0; c < wide; c += 64) {
    for (int s = 0; s < 16; s++) {
      v64b v[4], out[4];
      for (int i = 0; i < 4; i++)
        v[i] = prepare(4 * s + i < block->size ? load_part(values + (size_t)(4 * s + i) * D + c, D - c) : (v64b){});
      mix(v[0], v[1], v[2], v[3], out);
      memcpy(m->mixed + 256 * s, out, 256);
    }
    for (int q = 0; q < Q;) {
      int32_t *products = m->products + (size_t)2 * q * wide + c;
      const int8_t *shares = m->shares + 2 * q * 64;
      if (Q - q >= SHARE_TILE) share_tile(m->mixed, shares, products, wide, SHARE_TILE), q += SHARE_TILE;
      else share_tile(m->mixed, shares, products, wide, 1), q++;
    }
  }
}

/** Adds the probabilities of a block to what its slots have received. */
static void receive_block(int Q, const float *scores, const AttendMemory *m, float *most,
                          float *sum) {
  for (int q = 0; q < Q; q++) {
    const float total = (float)m->powers[q] * (1 / POWER_UNIT);
    for (int j = 0; j < 4; j++) {
      const v16f score = load_f(scores + (size_t)q * 64 + 16 * j);
      // A slot that the row does not see receives nothing, not the least power.
      const v16f p = select_f(score > -__builtin_inff(), exp_f(score - m->most[q]) / total, splat_f(0));
      for (int i = 0; i < 16; i++) {
        const int slot = 16 * (i / 4) + 4 * j + i % 4;
        if (p[i] > most[slot]) most[slot] = p[i];
        sum[slot] += p[i];
      }
    }
  }
}

static void attend(const Attend *a, AttendMemory *m) {
  const int G = a->model->heads / a->model->kvHeads, D = a->model->headSize, wide = padded(D, 64);
  const int numRows = a->endRow - a->firstRow, Q = numRows * G, half = D / 2;
  for (int q = 0; q < Q; q++) {
    const float *query = a->queries + (a->span->firstRow + a->firstRow + q / G) * a->queryStride +
                         (size_t)(a->kvHead * G + q % G) * D;
    float row[padded(D, 16)];
    memset(row, 0, sizeof row);
    memcpy(row, query, 4 * D);
    code_part(row, padded(D, 16), m->codes + (size_t)q * wide, m->scales + q, m->sums + q);
    m->most[q] = -__builtin_inff();
    m->powers[q] = 0;
    m->shareSums[2 * q] = m->shareSums[2 * q + 1] = 0;
    if (!a->layer->keyBias) continue;
    // q . R(p) b = sum over i of cos(p t_i) (q_i b_i + q_i+h b_i+h) + sin(p t_i) (q_i+h b_i - q_i b_i+h).
    const float *b = a->layer->keyBias + (size_t)a->kvHead * D;
    float *bias = m->bias + (size_t)q * wide;
    for (int i = 0; i < half; i++) {
      bias[i] = query[i] * b[i] + query[i + half] * b[i + half];
      bias[half + i] = query[i + half] * b[i] - query[i] * b[i + half];
    }
  }
  for (int r = 0; r < numRows; r++) m->largest[r] = TINY;
  memset(m->products, 0, sizeof(int32_t) * 2 * Q * wide);
  const Block *blocks = a->blocks + a->span->firstBlock;
  int used = 0;
  // Blocks whose slots no row sees, all new ones, are left out.
  for (int b = 0; b < a->span->numBlocks; b++)
    if (blocks[b].first < a->endRow) score_block(a, blocks + b, Q, G, m->scores + (size_t)64 * Q * used++, m);
  used = 0;
  for (int b = 0; b < a->span->numBlocks; b++)
    if (blocks[b].first < a->endRow) share_block(a, blocks + b, Q, G, m->scores + (size_t)64 * Q * used++, m);
  used = 0;
  if (a->most)
    for (int b = 0; b < a->span->numBlocks; b++)
      if (blocks[b].first < a->endRow)
        receive_block(Q, m->scores + (size_t)64 * Q * used++, m, a->most + 64 * b, a->sum + 64 * b);
  for (int q = 0; q < Q; q++) {
    float *out = a->out + (a->span->firstRow + a->firstRow + q / G) * a->outStride +
                 (size_t)(a->kvHead * G + q % G) * D;
    const float total = (float)m->powers[q] * (1 / POWER_UNIT);
    const float factor = m->largest[q / G] * (1.f / 127) / total;
    const int32_t *high = m->products + (size_t)2 * q * wide, *low = high + wide;
    const int32_t highBias = BIAS * m->shareSums[2 * q], lowBias = BIAS * m->shareSums[2 * q + 1];
    for (int d = 0; d < D; d++) {
      // Column 16l + 4j + i is element 4l + i of vector j.
      const int at = d / 64 * 64 + 16 * (d / 4 % 4) + 4 * (d / 16 % 4) + d % 4;
      out[d] = ((float)(high[at] - highBias) + (float)(low[at] - lowBias) * (1.f / 254)) * factor;
    }
  }
}
