/* What the rows of a piece of text see, found out in the plainest way. For fuzz.c. */
#pragma once
#include "cases.h"

/** Results of one token or slot, in the order of outcome_sizes. */
enum { LOGITS, QUERIES, KEYS, VALUES, KEY_SCALES, VALUE_SCALES, NUM_OUTCOMES };

typedef struct {
  const Model *m;
  Text text;
  size_t sizes[NUM_OUTCOMES];
  /** [numTokens][size] of each outcome, from the reference run. */
  char *expected[NUM_OUTCOMES];
  /** Attention received by the first sequence from its rows `measured` on: [2, numLayers, kvHeads, length]. */
  int measured;
  float *received;
} Case;

/** A pool with a slot for each token, and who computes in it. */
typedef struct {
  const Case *test;
  const Kernels *kernels;
  Threads *threads;
  Workspace *space;
  Pool pool;
  PoolLayer layers[MAX_LAYERS];
  int slots[MAX_TOKENS];
  /** The first run writes what the others must give. */
  int isReference;
} World;

/** Rows from .. to-1 of a sequence. */
typedef struct { int sequence, from, to; } Piece;

/** The row behind the last one of a piece that sees token i. */
static int until_of(const Piece *piece, int i, int window) {
  int until = piece->to - piece->from;
  while (until > 0 && window > 0 && piece->from + until - 1 - i >= window) until--;
  return until;
}

/**
 * Adds the blocks of a piece, and the number of the column of each of its tokens. Returns how many blocks. `window`: 0
 * for the view of the whole context. Else blocks that no row sees are left out, unless they are measured.
 */
static int add_blocks(const World *w, const Piece *piece, int window, int measures, Block *blocks, int32_t (*untils)[64],
                      int *columns) {
  const int L = w->pool.pageSlots, rows = piece->to - piece->from;
  int count = 0;
  for (int i = 0; i < piece->to; i++) {
    const int until = until_of(piece, i, window);
    if (until == 0 && !measures) continue;
    const int slot = w->slots[w->test->text.tokens[piece->sequence][i]], place = slot / L, first = slot % L / 64 * 64;
    int b = 0;
    while (b < count && (blocks[b].place != place || blocks[b].slot != first)) b++;
    if (b == count) {
      blocks[count++] = (Block){.place = place, .slot = first, .size = L - first < 64 ? L - first : 64};
      for (int j = 0; j < 64; j++) blocks[b].from[j] = INT32_MAX;
      memset(untils[b], 0, sizeof untils[b]);
      if (window > 0) blocks[b].until = untils[b];
    }
    if (until > 0) blocks[b].from[slot % L - first] = i < piece->from ? 0 : i - piece->from;
    untils[b][slot % L - first] = until;
    columns[i] = 64 * b + slot % L - first;
  }
  for (int b = 0; b < count; b++) {
    blocks[b].isFull = blocks[b].size == 64;
    blocks[b].first = INT32_MAX;
    for (int j = 0; j < 64; j++) {
      blocks[b].isFull &= blocks[b].from[j] == 0 && untils[b][j] == rows;
      if (untils[b][j] > blocks[b].end) blocks[b].end = untils[b][j];
      if (blocks[b].from[j] < blocks[b].first) blocks[b].first = blocks[b].from[j];
    }
  }
  return count;
}

/** The spans and blocks of a view. */
typedef struct {
  Span spans[MAX_SEQUENCES];
  Block *blocks;
  int32_t (*untils)[64];
  int numBlocks;
} Sights;

/** `window`: see add_blocks. `columns`: of the last piece. */
static View make_view(const World *w, const Piece *pieces, int numPieces, int window, int measures, Sights *out,
                      int *columns) {
  size_t numSlots = 0;
  for (int p = 0; p < numPieces; p++) numSlots += pieces[p].to;
  out->blocks = malloc(sizeof(Block) * numSlots);
  out->untils = malloc(sizeof *out->untils * numSlots);
  out->numBlocks = 0;
  int row = 0;
  for (int p = 0; p < numPieces; p++) {
    const int rows = pieces[p].to - pieces[p].from, at = out->numBlocks;
    out->numBlocks += add_blocks(w, pieces + p, window, measures, out->blocks + at, out->untils + at, columns);
    out->spans[p] = (Span){row, rows, at, out->numBlocks - at};
    row += rows;
  }
  return (View){out->spans, out->blocks};
}
