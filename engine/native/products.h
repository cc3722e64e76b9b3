/* Codes of activations, and products of a few rows with a linear layer. Included by step.c. */
#pragma once
#include "simd.h"
#include "step.h"

/** 8-bit codes of rows, x = code * scale: one scale per row, or one per BLOCK4 numbers for layers of 4 bits. */
typedef struct {
  int8_t *codes;
  float *scales;
  /** Sum of the codes that share a scale. */
  int32_t *sums;
  size_t stride;
  int numBlocks;
} Codes;

ALWAYS int padded(int n, int to) { return (n + to - 1) / to * to; }

/** Codes `n` numbers, a multiple of 16. */
static void code_part(const float *x, int n, int8_t *codes, float *scale, int32_t *sum) {
  v16f most = {};
  for (int i = 0; i < n; i += 16) most = max_f(most, abs_f(load_f(x + i)));
  const float largest = largest_of(most);
  // Below this, the inverse is infinite.
  const float inverse = largest > 1e-30f ? 127 / largest : 0;
  *scale = largest / 127;
  v16i total = {};
  for (int i = 0; i < n; i += 16) {
    const v16i code = nearest(load_f(x + i) * inverse);
    const v16b bytes = __builtin_convertvector(code, v16b);
    // As stored: a number that is not finite has a code of more than 8 bits.
    total += __builtin_convertvector(bytes, v16i);
    memcpy(codes + i, &bytes, 16);
  }
  *sum = sum_of(total);
}

/** Codes a row of `n` numbers, padded with zeros to a multiple of 16, for layer `m`. */
static void code_row(const Linear *m, const float *x, int n, Codes *out, int row) {
  int8_t *codes = out->codes + row * out->stride;
  const int wide = padded(n, 16);
  if (m->bits == 8) {
    code_part(x, wide, codes, out->scales + row, out->sums + row);
    return;
  }
  for (int b = 0; b * BLOCK4 < wide; b++) {
    const int from = b * BLOCK4, to = from + BLOCK4 < wide ? from + BLOCK4 : wide;
    const size_t at = (size_t)row * out->numBlocks + b;
    code_part(x + from, to - from, codes + from, out->scales + at, out->sums + at);
    memset(codes + to, 0, from + BLOCK4 - to);
  }
}

/**
 * Few rows wait for memory. So far ahead weights are fetched for them: more than the processor does by itself.
 */
enum { PREFETCH_BYTES = 4096, MAX_PREFETCHING_ROWS = 4 };

/** Rows row .. row+R-1 times N groups from `group` on, in U partial sums. out: [R][N][GROUP], without bias. */
ALWAYS void tile8(const Linear *m, int group, const Codes *x, int row, float *out, const int R, const int N,
                  const int U) {
  const int width = m->width;
  const int8_t *weights = m->weights + (size_t)group * GROUP * width;
  const size_t next = (size_t)GROUP * width;
  const int8_t *codes = x->codes + row * x->stride;
  v16i sums[R][N][U];
  for (int r = 0; r < R; r++)
    for (int n = 0; n < N; n++)
      for (int u = 0; u < U; u++) sums[r][n][u] = (v16i){};
  for (int i = 0; i < width; i += 4 * U) {
#pragma clang loop unroll(full)
    for (int u = 0; u < U; u++) {
      v64b w[N];
      for (int n = 0; n < N; n++) {
        const int8_t *at = weights + n * next + 16 * (i + 4 * u);
        if (R <= MAX_PREFETCHING_ROWS) __builtin_prefetch(at + PREFETCH_BYTES);
        w[n] = prepare(load_b(at));
      }
#pragma clang loop unroll(full)
      for (int r = 0; r < R; r++) {
        const int32_t four_codes = four(codes + r * x->stride + i + 4 * u);
        for (int n = 0; n < N; n++) sums[r][n][u] = dot(sums[r][n][u], w[n], four_codes);
      }
    }
  }
  for (int r = 0; r < R; r++)
    for (int n = 0; n < N; n++) {
      v16i sum = sums[r][n][0];
      for (int u = 1; u < U; u++) sum += sums[r][n][u];
      const v16f scale = load_f(m->scales + (group + n) * GROUP);
      store_f(out + (r * N + n) * GROUP, to_f(sum - BIAS * x->sums[row + r]) * scale * x->scales[row + r]);
    }
}

/** As tile8 for layers of 4 bits, with one group. */
ALWAYS void tile4(const Linear *m, int group, const Codes *x, int row, float *out, const int R) {
  const int blocks = m->width / BLOCK4;
  const int8_t *weights = m->weights + (size_t)group * GROUP * m->width / 2;
  const float *scales = m->scales + (size_t)group * blocks * GROUP;
  v16f totals[R];
  for (int r = 0; r < R; r++) totals[r] = (v16f){};
  for (int b = 0; b < blocks; b++) {
    v16i sums[R];
    for (int r = 0; r < R; r++) sums[r] = splat_i(-8 * x->sums[(size_t)(row + r) * blocks + b]);
    for (int v = 0; v < BLOCK4 / 8; v++, weights += 64) {
      const v16i both = (v16i)load_b(weights);
      const v64b low = (v64b)(both & 0x0f0f0f0f), high = (v64b)((both >> 4) & 0x0f0f0f0f);
#pragma clang loop unroll(full)
      for (int r = 0; r < R; r++) {
        const int8_t *codes = x->codes + (row + r) * x->stride + b * BLOCK4 + 8 * v;
        sums[r] = dot(dot(sums[r], low, four(codes)), high, four(codes + 4));
      }
    }
    const v16f scale = load_f(scales + b * GROUP);
    for (int r = 0; r < R; r++) totals[r] += to_f(sums[r]) * (scale * x->scales[(size_t)(row + r) * blocks + b]);
  }
  for (int r = 0; r < R; r++) store_f(out + r * GROUP, totals[r]);
}

#define TILE8(R, N, U)                                                                                       \
  static void tile8_##R##_##N(const Linear *m, int group, const Codes *x, int row, float *out) {             \
    tile8(m, group, x, row, out, R, N, U);                                                                   \
  }
#define TILE4(R)                                                                                             \
  static void tile4_##R(const Linear *m, int group, const Codes *x, int row, float *out) {                   \
    tile4(m, group, x, row, out, R);                                                                         \
  }
TILE8(1, 1, 4)
TILE8(2, 1, 2)
TILE8(3, 1, 2)
TILE8(4, 1, 1)
TILE4(1)
TILE4(2)
TILE4(3)
TILE4(4)
#if PREFERRED_ROWS > 4
TILE8(8, 1, 1)
TILE8(12, 2, 1)
TILE8(8, 2, 1)
TILE8(4, 2, 1)
TILE4(8)
#endif

enum { MAX_TILE_ROWS = 12, MAX_TILE_GROUPS = 2 };

/**
 * Multiplies as many of the rows row .. end-1 as are fast at once with one group, or with two if `two` and the layer
 * allows it. out: [rows][groups][GROUP]. Returns the number of rows.
 */
static int tile(const Linear *m, int group, int two, const Codes *x, int row, int end, float *out) {
  const int left = end - row;
  (void)two;
#if PREFERRED_ROWS > 4
  if (two && left >= 12) return tile8_12_2(m, group, x, row, out), 12;
  if (two && left >= 8) return tile8_8_2(m, group, x, row, out), 8;
  if (two) return tile8_4_2(m, group, x, row, out), 4;
  if (m->bits == 8 && left >= 8) return tile8_8_1(m, group, x, row, out), 8;
  if (m->bits == 4 && left >= 8) return tile4_8(m, group, x, row, out), 8;
#endif
  const int few = left < 4 ? left : 4;
  if (m->bits == 8) {
    if (few == 4) tile8_4_1(m, group, x, row, out);
    else if (few == 3) tile8_3_1(m, group, x, row, out);
    else if (few == 2) tile8_2_1(m, group, x, row, out);
    else tile8_1_1(m, group, x, row, out);
  } else {
    if (few == 4) tile4_4(m, group, x, row, out);
    else if (few == 3) tile4_3(m, group, x, row, out);
    else if (few == 2) tile4_2(m, group, x, row, out);
    else tile4_1(m, group, x, row, out);
  }
  return few;
}

/** Whether the next rows can be multiplied with two groups at once. */
ALWAYS int takes_two(const Linear *m, int left) { return PREFERRED_ROWS > 4 && m->bits == 8 && left >= 4; }

ALWAYS v16f with_bias(const Linear *m, int group, v16f sums) {
  return m->bias ? sums + load_f(m->bias + group * GROUP) : sums;
}

/** out[row] (+)= x[row] times groups from .. to-1, for rows 0 .. numRows-1. */
static void product(const Linear *m, int from, int to, const Codes *x, int numRows, float *out, size_t stride,
                    int adds) {
  float sums[MAX_TILE_ROWS * MAX_TILE_GROUPS * GROUP];
  for (int group = from; group < to;) {
    const int pair = group + 1 < to && takes_two(m, numRows) ? 2 : 1;
    for (int row = 0; row < numRows;) {
      const int two = pair == 2 && takes_two(m, numRows - row);
      int done = 0;
      for (int n = 0; n < pair; n += two ? 2 : 1) {
        done = tile(m, group + n, two, x, row, numRows, sums);
        const int width = two ? 2 : 1;
        for (int r = 0; r < done; r++)
          for (int i = 0; i < width; i++) {
            float *at = out + (row + r) * stride + (group + n + i) * GROUP;
            const v16f y = with_bias(m, group + n + i, load_f(sums + (r * width + i) * GROUP));
            store_f(at, adds ? load_f(at) + y : y);
          }
      }
      row += done;
    }
    group += pair;
  }
}

/** out[row] = silu(x gate) * (x up). */
static void gated_product(const Layer *layer, int from, int to, const Codes *x, int numRows, float *out,
                          size_t stride) {
  float gates[MAX_TILE_ROWS * GROUP], ups[MAX_TILE_ROWS * GROUP];
  for (int group = from; group < to; group++) {
    for (int row = 0; row < numRows;) {
      const int done = tile(&layer->gate, group, 0, x, row, numRows, gates);
      tile(&layer->up, group, 0, x, row, numRows, ups);
      for (int r = 0; r < done; r++) {
        const v16f gate = with_bias(&layer->gate, group, load_f(gates + r * GROUP));
        const v16f up = with_bias(&layer->up, group, load_f(ups + r * GROUP));
        // silu(x) = x / (1 + exp(-x)), with the exponential of a negative number only.
        const v16f e = exp_f(-abs_f(gate));
        const v16f sigmoid = select_f(gate < 0, e, splat_f(1)) / (1 + e);
        store_f(out + (row + r) * stride + group * GROUP, gate * sigmoid * up);
      }
      row += done;
    }
  }
}
