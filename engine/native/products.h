/* Codes of activations, and products of a few rows with a linear layer. Included by step.c. */
#pragma once
#include "curves.h"
#include "step.h"

/** Rows that are multiplied at once: their codes lie together. */
enum { LANES_OF_ROWS = 4 };

/**
 * 8-bit codes of rows, x = code * scale: one scale per row, or one per BLOCK4 numbers for layers of 4 bits. The codes
 * of `together` rows are [stride / 4][together][4]. Behind the last row there is memory for the rows of its last group.
 */
typedef struct {
  int8_t *codes;
  float *scales;
  /** Sum of the codes that share a scale. */
  int32_t *sums;
  size_t stride;
  int numBlocks, together;
} Codes;

ALWAYS int padded(int n, int to) { return (n + to - 1) / to * to; }

/** The size of the largest of `n` numbers, a multiple of 16. */
ALWAYS float largest_size(const float *x, int n) {
  v16f most = {};
  for (int i = 0; i < n; i += 16) most = max_f(most, abs_f(load_f(x + i)));
  return largest_of(most);
}

/** Below the limit, the inverse of a step is infinite. */
ALWAYS float inverse_step(float largest) { return largest > 1e-30f ? 127 / largest : 0; }

/** Codes `n` numbers, a multiple of 16. Four codes follow each other, the next four are `step` bytes behind. */
ALWAYS void code_part(const float *x, int n, int8_t *codes, int step, float *scale, int32_t *sum) {
  const float largest = largest_size(x, n), inverse = inverse_step(largest);
  *scale = largest / 127;
  v16i total = {};
  for (int i = 0; i < n; i += 16, codes += 4 * step) {
    const v16i code = nearest(load_f(x + i) * inverse);
    const v16b bytes = __builtin_convertvector(code, v16b);
    // As stored: a number that is not finite has a code of more than 8 bits.
    total += __builtin_convertvector(bytes, v16i);
    if (step == 4) memcpy(codes, &bytes, 16);
    else
      for (int j = 0; j < 4; j++) memcpy(codes + j * step, (const int8_t *)&bytes + 4 * j, 4);
  }
  *sum = sum_of(total);
}

ALWAYS void code_blocks(const Linear *m, const float *x, int n, Codes *out, int row, const int step) {
  int8_t *codes = out->codes + row / out->together * out->together * out->stride + row % out->together * 4;
  const int wide = padded(n, 16), block = m->bits == 8 ? wide : BLOCK4;
  for (int b = 0; b * block < wide; b++) {
    const int from = b * block, to = from + block < wide ? from + block : wide;
    const size_t at = (size_t)row * out->numBlocks + b;
    code_part(x + from, to - from, codes + from / 4 * step, step, out->scales + at, out->sums + at);
    for (int i = to; i < from + block; i += 4) memset(codes + i / 4 * step, 0, 4);
  }
}

/** Codes a row of `n` numbers, padded with zeros to a multiple of 16, for layer `m`. */
static void code_row(const Linear *m, const float *x, int n, Codes *out, int row) {
  if (out->together == 1) code_blocks(m, x, n, out, row, 4);
  else code_blocks(m, x, n, out, row, 4 * LANES_OF_ROWS);
}

/**
 * Codes a row of `n` numbers for a router, in two rows: the numbers, and what their codes leave. Overwrites the numbers.
 */
ONCE void code_finely(const Linear *m, float *x, int n, Codes *out, int row) {
  code_row(m, x, n, out, row);
  const int wide = padded(n, 16);
  const float inverse = inverse_step(largest_size(x, wide));
  for (int i = 0; i < wide; i += 16) {
    const v16f steps = load_f(x + i) * inverse;
    store_f(x + i, steps - to_f(nearest(steps)));
  }
  code_row(m, x, n, out, row + 1);
  out->scales[row + 1] *= out->scales[row];
}

/**
 * Few rows wait for memory. So far ahead weights are fetched for them: more than the processor does by itself.
 */
enum { PREFETCH_BYTES = 4096, MAX_TILE_ROWS = 12, MAX_SUMS = 4 };

/** Groups of outputs that are computed at once: `group[n]` of layer `layer[n]`. */
typedef struct {
  const Linear *layer[TILE_GROUPS];
  int group[TILE_GROUPS];
} Groups;

/** Where the codes of the rows from `row` on begin: of each, or of LANES_OF_ROWS together. */
ALWAYS void find_codes(const Codes *x, int row, const int8_t *codes[MAX_TILE_ROWS], const int R) {
  UNROLL for (int r = 0; r < R; r++)
    codes[r] = R < LANES_OF_ROWS ? x->codes + (row + r) * x->stride
                                 : x->codes + (row + r / LANES_OF_ROWS * LANES_OF_ROWS) * x->stride +
                                       r % LANES_OF_ROWS * 4;
}

/** Rows row .. row+R-1 times the groups, in U partial sums. out: [R][TILE_GROUPS][GROUP], without bias. */
ALWAYS void tile8(const Groups *groups, const Codes *x, int row, float *out, const int R, const int U) {
  const int width = groups->layer[0]->width, step = R < LANES_OF_ROWS ? 1 : LANES_OF_ROWS;
  const int8_t *weights[TILE_GROUPS], *codes[MAX_TILE_ROWS];
  UNROLL for (int n = 0; n < TILE_GROUPS; n++)
    weights[n] = groups->layer[n]->weights + (size_t)groups->group[n] * GROUP * width;
  find_codes(x, row, codes, R);
  v16i sums[MAX_TILE_ROWS][TILE_GROUPS][MAX_SUMS];
  UNROLL for (int r = 0; r < R; r++)
    UNROLL for (int n = 0; n < TILE_GROUPS; n++)
      UNROLL for (int u = 0; u < U; u++) sums[r][n][u] = (v16i){};
  for (long i = 0; i < width; i += 4 * U)
    UNROLL for (int u = 0; u < U; u++) {
      v64b w[TILE_GROUPS];
      UNROLL for (int n = 0; n < TILE_GROUPS; n++) {
        const int8_t *at = weights[n] + 16 * (i + 4 * u);
        __builtin_prefetch(at + PREFETCH_BYTES);
        w[n] = prepare(load_b(at));
      }
      UNROLL for (int r = 0; r < R; r++) {
        const int32_t four_codes = four(codes[r] + step * (i + 4 * u));
        UNROLL for (int n = 0; n < TILE_GROUPS; n++) sums[r][n][u] = dot(sums[r][n][u], w[n], four_codes);
      }
    }
  UNROLL for (int r = 0; r < R; r++)
    UNROLL for (int n = 0; n < TILE_GROUPS; n++) {
      v16i sum = sums[r][n][0];
      UNROLL for (int u = 1; u < U; u++) sum += sums[r][n][u];
      const v16f scale = load_f(groups->layer[n]->scales + groups->group[n] * GROUP);
      store_f(out + (r * TILE_GROUPS + n) * GROUP,
              to_f(sum - BIAS * x->sums[row + r]) * scale * x->scales[row + r]);
    }
}

/** As tile8 for layers of 4 bits, with one group after the other. */
ALWAYS void tile4(const Groups *groups, const Codes *x, int row, float *out, const int R) {
  const int blocks = groups->layer[0]->width / BLOCK4, step = R < LANES_OF_ROWS ? 1 : LANES_OF_ROWS;
  for (int n = 0; n < TILE_GROUPS; n++) {
    const Linear *m = groups->layer[n];
    const int8_t *weights = m->weights + (size_t)groups->group[n] * GROUP * m->width / 2;
    const float *scales = m->scales + (size_t)groups->group[n] * blocks * GROUP;
    const int8_t *codes[MAX_TILE_ROWS];
    find_codes(x, row, codes, R);
    v16f totals[MAX_TILE_ROWS];
    UNROLL for (int r = 0; r < R; r++) totals[r] = (v16f){};
    for (long b = 0; b < blocks; b++) {
      v16i lows[MAX_TILE_ROWS], highs[MAX_TILE_ROWS];
      UNROLL for (int r = 0; r < R; r++) {
        lows[r] = splat_i(-8 * x->sums[(size_t)(row + r) * blocks + b]);
        highs[r] = (v16i){};
      }
      __builtin_prefetch(scales + b * GROUP + PREFETCH_BYTES / 16);
      for (long i = b * BLOCK4; i < (b + 1) * BLOCK4; i += 8, weights += 64) {
        __builtin_prefetch(weights + PREFETCH_BYTES);
        const v16i both = (v16i)load_b(weights);
        const v64b low = (v64b)(both & 0x0f0f0f0f), high = (v64b)((both >> 4) & 0x0f0f0f0f);
        UNROLL for (int r = 0; r < R; r++) {
          const int8_t *at = codes[r] + step * i;
          // Many rows give enough independent sums. Then one for each row is enough.
          if (R < 8) {
            lows[r] = dot(lows[r], low, four(at));
            highs[r] = dot(highs[r], high, four(at + 4 * step));
          } else lows[r] = dot(dot(lows[r], low, four(at)), high, four(at + 4 * step));
        }
      }
      const v16f scale = load_f(scales + b * GROUP);
      UNROLL for (int r = 0; r < R; r++)
        totals[r] += to_f(lows[r] + highs[r]) * (scale * x->scales[(size_t)(row + r) * blocks + b]);
    }
    UNROLL for (int r = 0; r < R; r++) store_f(out + (r * TILE_GROUPS + n) * GROUP, totals[r]);
  }
}

#define TILE(R, U)                                                                                           \
  static void tile8_##R(const Groups *groups, const Codes *x, int row, float *out) {                         \
    tile8(groups, x, row, out, R, U);                                                                        \
  }                                                                                                          \
  static void tile4_##R(const Groups *groups, const Codes *x, int row, float *out) {                         \
    tile4(groups, x, row, out, R);                                                                           \
  }
#define TILE_OF(R) groups->layer[0]->bits == 8 ? tile8_##R(groups, x, row, out) : tile4_##R(groups, x, row, out)
TILE(1, 4 / TILE_GROUPS)
TILE(2, 2)
TILE(3, 2)
TILE(4, 1)
#if PREFERRED_ROWS > 4
TILE(8, 1)
TILE(12, 1)
#endif

/**
 * Multiplies as many rows from `row` on as are fast at once. out: [rows][TILE_GROUPS][GROUP]. Returns the number of
 * rows: with those behind the last one, whose results mean nothing.
 */
static int tile(const Groups *groups, const Codes *x, int row, int end, float *out) {
  const int left = end - row;
  if (x->together == 1) {
    if (left == 1) return TILE_OF(1), 1;
    if (left == 2) return TILE_OF(2), 2;
    return TILE_OF(3), 3;
  }
#if PREFERRED_ROWS > 4
  if (left > 8) return TILE_OF(12), 12;
  if (left > 4) return TILE_OF(8), 8;
#endif
  return TILE_OF(4), 4;
}

ALWAYS v16f with_bias(const Linear *m, int group, v16f sums) {
  return m->bias ? sums + load_f(m->bias + group * GROUP) : sums;
}

/** out[row] (+)= x[row] times groups from .. to-1, for rows 0 .. numRows-1. */
static void product(const Linear *m, int from, int to, const Codes *x, int numRows, float *out, size_t stride,
                    int adds) {
  float sums[MAX_TILE_ROWS * TILE_GROUPS * GROUP];
  // Each of the groups at once runs through a part, so that the weights fetched ahead are the next ones.
  const int part = (to - from + TILE_GROUPS - 1) / TILE_GROUPS;
  for (int i = 0; i < part; i++) {
    Groups groups;
    for (int n = 0; n < TILE_GROUPS; n++) {
      groups.layer[n] = m;
      // The last part can be shorter. Then its last group comes once more.
      groups.group[n] = from + n * part + i < to ? from + n * part + i : to - 1;
    }
    for (int row = 0; row < numRows;) {
      const int done = tile(&groups, x, row, numRows, sums);
      for (int r = 0; r < done && row + r < numRows; r++)
        for (int n = 0; n < TILE_GROUPS && from + n * part + i < to; n++) {
          const int group = groups.group[n];
          float *at = out + (row + r) * stride + group * GROUP;
          const v16f y = with_bias(m, group, load_f(sums + (r * TILE_GROUPS + n) * GROUP));
          store_f(at, adds ? load_f(at) + y : y);
        }
      row += done;
    }
  }
}

/** out[row] = activation(x gate) * (x up). */
static void gated_product(const Linear *gates, const Linear *ups, int isGelu, int from, int to, const Codes *x,
                          int numRows, float *out, size_t stride) {
  enum { TILES = 2 / TILE_GROUPS };
  float sums[TILES][MAX_TILE_ROWS * TILE_GROUPS * GROUP];
  const Linear *const linears[] = {gates, ups};
  for (int group = from; group < to; group++) {
    for (int row = 0; row < numRows;) {
      int done = 0;
      for (int t = 0; t < TILES; t++) {
        Groups groups;
        for (int n = 0; n < TILE_GROUPS; n++) {
          groups.layer[n] = linears[t * TILE_GROUPS + n];
          groups.group[n] = group;
        }
        done = tile(&groups, x, row, numRows, sums[t]);
      }
      for (int r = 0; r < done && row + r < numRows; r++) {
        const float *first = sums[0] + r * TILE_GROUPS * GROUP, *second = first + GROUP;
        if (TILES == 2) second = sums[TILES - 1] + r * GROUP;
        const v16f gate = with_bias(gates, group, load_f(first)), up = with_bias(ups, group, load_f(second));
        store_f(out + (row + r) * stride + group * GROUP, activated(gate, isGelu) * up);
      }
      row += done;
    }
  }
}
