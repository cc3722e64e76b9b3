/* Splits the attention of a step into items, and makes the buffers of a step. Computes nothing. Included by step.c. */
#pragma once
#include "run.h"

/** Most scores of one thread, unless one row has more: a part of the L2 cache. */
enum { MAX_SCORES = 128 * 1024, MAX_ROWS = 16 };

static int rows_per_item(const Model *m, const Step *step, const Span *span) {
  if (step->received) return span->numRows;
  const int most = MAX_SCORES / (64 * span->numBlocks * (m->heads / m->kvHeads));
  return most < 1 ? 1 : most > MAX_ROWS ? MAX_ROWS : most;
}

static int add_items(Item *items, int count, const Model *m, int span, int firstRow, int endRow) {
  for (int h = 0; h < m->kvHeads; h++) {
    if (items) items[count] = (Item){span, firstRow, endRow, h};
    count++;
  }
  return count;
}

/** Splits the attention of all rows, or of those with logits. Without `items` only counts. */
static int split(const Model *m, const Step *step, int isLast, Item *items) {
  int count = 0, next = 0;
  for (int s = 0; s < step->numSpans; s++) {
    const Span *span = step->spans + s;
    if (!isLast) {
      const int rows = rows_per_item(m, step, span);
      for (int row = 0; row < span->numRows; row += rows)
        count = add_items(items, count, m, s, row, row + rows < span->numRows ? row + rows : span->numRows);
      continue;
    }
    for (; next < step->numLogits && step->logitRows[next] < span->firstRow + span->numRows; next++) {
      const int row = step->logitRows[next] - span->firstRow;
      count = add_items(items, count, m, s, row, row + 1);
    }
  }
  return count;
}

static int prepare_memory(Run *run) {
  const Model *m = run->model;
  const Step *step = run->step;
  const int threads = threads_count(run->threads), G = m->heads / m->kvHeads, wide = padded(m->headSize, 64);
  size_t Q = 1, rows = 1, scores = 0;
  for (int s = 0; s < step->numSpans; s++) {
    const Span *span = step->spans + s;
    size_t most = step->received ? 1 : (size_t)rows_per_item(m, step, span);
    if (most > (size_t)span->numRows) most = span->numRows;
    if (most > rows) rows = most;
    if (most * G * span->numBlocks * 64 > scores) scores = most * G * span->numBlocks * 64;
  }
  Q = rows * G;
  run->memory = workspace_get(run->space, BUFFER_THREAD, threads * sizeof *run->memory);
  if (!run->memory) return 1;
  const size_t sizes[] = {Q * wide,      4 * Q,        4 * Q,     4 * Q * wide, 4 * scores, 4 * Q,
                          4 * rows,      8 * Q * wide, 8 * Q,     8 * Q,        128 * Q,    (size_t)64 * wide};
  enum { NUM_SIZES = sizeof sizes / sizeof *sizes };
  for (int t = 0; t < threads; t++) {
    size_t total = 0;
    for (int i = 0; i < NUM_SIZES; i++) total += (sizes[i] + 63) / 64 * 64;
    char *at = workspace_get(run->space, BUFFER_THREAD + 1 + t, total);
    if (!at) return 1;
    AttendMemory *memory = run->memory + t;
    void **fields[NUM_SIZES] = {(void **)&memory->codes,    (void **)&memory->scales,    (void **)&memory->sums,
                                (void **)&memory->bias,     (void **)&memory->scores,    (void **)&memory->most,
                                (void **)&memory->largest,  (void **)&memory->products,  (void **)&memory->powers,
                                (void **)&memory->shareSums, (void **)&memory->shares,   (void **)&memory->mixed};
    for (int i = 0; i < NUM_SIZES; i++) {
      *fields[i] = at;
      at += (sizes[i] + 63) / 64 * 64;
    }
  }
  return 0;
}

static int widest(const Model *m, int blocks) {
  int most = 0;
  for (int l = 0; l < m->numLayers; l++) {
    const Linear *all[] = {&m->layers[l].qkv, &m->layers[l].o, &m->layers[l].gate, &m->layers[l].down};
    for (int i = 0; i < 4; i++) {
      const int n = !blocks ? padded(all[i]->width, 64) : all[i]->bits == 4 ? all[i]->width / BLOCK4 : 1;
      if (n > most) most = n;
    }
  }
  const int head = !blocks ? padded(m->head.width, 64) : m->head.bits == 4 ? m->head.width / BLOCK4 : 1;
  return head > most ? head : most;
}

/** Makes all buffers. Returns 1 without memory. */
static int prepare_run(Run *run) {
  const Model *m = run->model;
  const size_t rows = run->numRows;
  const int blocks = widest(m, 1);
  run->hiddenStride = padded(m->hidden, 16);
  run->qkvStride = m->layers->qkv.groups * GROUP;
  run->mixedStride = padded(m->heads * m->headSize, 16);
  run->actStride = m->layers->gate.groups * GROUP;
  run->hidden = workspace_get(run->space, BUFFER_HIDDEN, 4 * rows * run->hiddenStride);
  run->normed = workspace_get(run->space, BUFFER_NORMED, 4 * threads_count(run->threads) * run->hiddenStride);
  run->qkv = workspace_get(run->space, BUFFER_QKV, 4 * rows * run->qkvStride);
  run->mixed = workspace_get(run->space, BUFFER_MIXED, 4 * rows * run->mixedStride);
  run->act = workspace_get(run->space, BUFFER_ACT, 4 * rows * run->actStride);
  run->codes.codes = workspace_get(run->space, BUFFER_CODES, rows * widest(m, 0));
  run->codes.scales = workspace_get(run->space, BUFFER_SCALES, 4 * rows * blocks);
  run->codes.sums = workspace_get(run->space, BUFFER_SUMS, 4 * rows * blocks);
  const int all = split(m, run->step, 0, 0), last = split(m, run->step, 1, 0);
  run->items = workspace_get(run->space, BUFFER_ITEMS, (size_t)(all > last ? all : last) * sizeof(Item));
  if (!run->hidden || !run->normed || !run->qkv || !run->mixed || !run->act || !run->codes.codes ||
      !run->codes.scales || !run->codes.sums || !run->items)
    return 1;
  run->numItems = split(m, run->step, 0, run->items);
  return prepare_memory(run);
}
