/* Codes of probabilities, and their products with the values of a block. Included by attention.h. */
#pragma once
#include "blocks.h"

#if defined(__AVX512VNNI__)
enum { SHARE_TILE = 6 };
#else
enum { SHARE_TILE = 1 };
#endif

/** Sums of integers over blocks, so that their order does not matter. For Q queries. */
typedef struct {
  /** [Q][2][D]: products of both codes with the values, in the order of mix(). D = headSize padded to 64. */
  int32_t *products;
  /** [Q][8]: powers. */
  uint64_t *powers;
  /** [Q][2][16]: both codes, where BIAS is not 0. */
  int32_t *codeSums;
} Shares;

/** The codes of a block that are not all zero. */
typedef struct {
  /** [count][64]. */
  int8_t *codes;
  /** [count]: 2 * query, + 1 for the second code. */
  int32_t *places;
  int count;
} CodeList;

/**
 * Codes the probabilities of a query at 64 slots, in two numbers of 8 bits. `most` is the largest score of the query,
 * `scales` are those of the values times 127 / POWER_UNIT, divided by the largest one. Adds the powers to `powers` [8].
 */
ALWAYS void code_shares(const float *scores, const v16f scales[4], float most, int isFull, uint64_t *powers,
                        v64b codes[2]) {
  v16i sums = {}, first[4], second[4];
  UNROLL for (int j = 0; j < 4; j++) {
    const v16f e = power_f(load_f(scores + 16 * j) - most);
    sums += truncate(e + 0.5f);
    v16f share = e * scales[j];
    // A slot that the row does not see may hold anything, and its scale too.
    if (!isFull) share = select_f(e > 1e-20f, share, splat_f(0));
    const v16f high = share + 12582912.f;
    const v16f low = fma_f(share - (high - 12582912.f), splat_f(254.f), splat_f(12582912.f));
    first[j] = as_i(high) - as_i(splat_f(12582912.f));
    second[j] = as_i(low) - as_i(splat_f(12582912.f));
  }
  const v8u pairs = (v8u)sums;
  store_u(powers, load_u(powers) + (pairs & 0xffffffffu) + (pairs >> 32));
  codes[0] = pack(first);
  codes[1] = pack(second);
}

/** Adds products of n codes with the mixed values of 64 slots and 64 columns. */
ALWAYS void share_tile(const int8_t *mixed, const int8_t *codes, const int32_t *places, int32_t *products, int wide,
                       const int n) {
  v16i sums[SHARE_TILE][4];
  UNROLL for (int q = 0; q < n; q++)
    UNROLL for (int j = 0; j < 4; j++) sums[q][j] = load_i(products + (size_t)places[q] * wide + 16 * j);
  for (int s = 0; s < 64; s += 4, mixed += 256)
    UNROLL for (int q = 0; q < n; q++) {
      const int32_t four_codes = four(codes + 64 * q + s);
      UNROLL for (int i = 0; i < 4; i++) sums[q][i] = dot(sums[q][i], load_b(mixed + 64 * i), four_codes);
    }
  UNROLL for (int q = 0; q < n; q++)
    UNROLL for (int j = 0; j < 4; j++) store_i(products + (size_t)places[q] * wide + 16 * j, sums[q][j]);
}

/** As share_tile for all codes, as many at once as is fast. */
static void share_codes(const int8_t *mixed, const CodeList *list, int32_t *products, int wide) {
  for (int i = 0; i < list->count;) {
    const int8_t *codes = list->codes + 64 * i;
    const int32_t *places = list->places + i;
    const int n = tile_of(list->count - i, SHARE_TILE);
    if (n == 6) share_tile(mixed, codes, places, products, wide, SHARE_TILE < 6 ? 1 : 6);
    else if (n == 4) share_tile(mixed, codes, places, products, wide, SHARE_TILE < 4 ? 1 : 4);
    else if (n == 3) share_tile(mixed, codes, places, products, wide, SHARE_TILE < 3 ? 1 : 3);
    else if (n == 2) share_tile(mixed, codes, places, products, wide, SHARE_TILE < 2 ? 1 : 2);
    else share_tile(mixed, codes, places, products, wide, 1);
    i += n;
  }
}

/** Mixes 64 columns of the values of a block, of which `left` are there, and fetches those of the next one. */
ALWAYS void mix_values(const int8_t *values, const int8_t *next, size_t size, int left, int numSlots, int8_t *mixed) {
  for (int s = 0; s < 64; s += 4, mixed += 256, values += 4 * size, next += 4 * size) {
    v64b v[4], out[4];
    UNROLL for (int i = 0; i < 4; i++) {
      __builtin_prefetch(next + i * size);
      v[i] = prepare(s + i < numSlots ? load_part(values + i * size, left) : (v64b){});
    }
    mix(v[0], v[1], v[2], v[3], out);
    memcpy(mixed, out, 256);
  }
}

static const int8_t *values_of(const Attend *a, const Block *block) {
  const size_t head = (size_t)block->place * a->model->kvHeads + a->item->kvHead;
  return a->rows->values + (head * a->pool->pageSlots + block->slot) * a->model->headSize;
}

/** Codes the probabilities of all queries that see a block: see share_block. */
ALWAYS void list_codes(const Attend *a, const Seen *seen, const v16f valueScales[4], const float *scores,
                       const float *most, const float *largest, const Shares *out, CodeList *list, const int isFull) {
  // Local copies: the compiler must assume that a store changes the fields of a struct.
  const int G = a->model->heads / a->model->kvHeads, first = seen->firstRow - a->item->firstRow;
  const int end = seen->endRow - a->item->firstRow;
  uint64_t *const powers = out->powers;
  int32_t *const codeSums = out->codeSums, *const places = list->places;
  int8_t *const listed = list->codes;
  int count = 0;
  for (int row = first; row < end; row++) {
    const float inverse = 127 / POWER_UNIT / largest[row];
    v16f scales[4];
    UNROLL for (int j = 0; j < 4; j++) scales[j] = valueScales[j] * inverse;
    for (long q = (long)row * G; q < (long)(row + 1) * G; q++, scores += 64) {
      v64b codes[2];
      code_shares(scores, scales, most[q], isFull, powers + 8 * q, codes);
      UNROLL for (int c = 0; c < 2; c++) {
        memcpy(listed + 64 * (long)count, &codes[c], 64);
        places[count] = 2 * (int)q + c;
        count += !is_zero(codes[c]);
        int32_t *const sums = codeSums + 16 * (2 * q + c);
        if (BIAS) store_i(sums, add_codes(load_i(sums), codes[c]));
      }
    }
  }
  list->count = count;
}

/** Adds what the queries that see a block take from it. most: [queries of the item], largest: [rows of the item]. */
static void share_block(const Attend *a, const Seen *seen, const Block *next, const float *scores, const float *most,
                        const float *largest, const Shares *out, CodeList *list, int8_t *mixed) {
  const Block *block = seen->block;
  const int D = a->model->headSize;
  const size_t head = (size_t)block->place * a->model->kvHeads + a->item->kvHead;
  v16f scales[4];
  mixed_scales(a->rows->valueScales + head * a->pool->pageSlots + block->slot, block->size, scales);
  scores += seen->scores;
  if (block->isFull) list_codes(a, seen, scales, scores, most, largest, out, list, 1);
  else list_codes(a, seen, scales, scores, most, largest, out, list, 0);
  for (int c = 0; c < D && list->count > 0; c += 64) {
    const int8_t *values = values_of(a, block) + c, *nextValues = values_of(a, next) + c;
    if (block->size == 64 && D - c >= 64) mix_values(values, nextValues, D, 64, 64, mixed);
    else mix_values(values, nextValues, D, D - c, block->size, mixed);
    share_codes(mixed, list, out->products + c, padded(D, 64));
  }
}
