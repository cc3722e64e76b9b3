/* Splits the attention of a step into items, and makes the buffers of a step. Computes nothing. Included by step.c. */
#pragma once
#include "run.h"

/**
 * Most scores of an item of several rows: a part of the L2 cache. Few items are in parts of at least MIN_PART slots, so
 * that each thread has several.
 */
enum { MAX_SCORES = 256 * 1024, MAX_ROWS = 16, MAX_PARTS = 16, MIN_PART = 512, PARTS_PER_THREAD = 4 };

static int queries_per_row(const Model *m) { return m->heads / m->kvHeads; }

static int rows_per_item(const Model *m, const Step *step, const Span *span) {
  if (step->received) return span->numRows;
  const int most = MAX_SCORES / (64 * span->numBlocks * queries_per_row(m));
  return most < 1 ? 1 : most > MAX_ROWS ? MAX_ROWS : most;
}

/** How many of the first `most` blocks of two spans are the same, and seen by all rows. */
static int num_shared(const View *view, const Span *a, const Span *b, int most) {
  const Block *x = view->blocks + a->firstBlock, *y = view->blocks + b->firstBlock;
  int n = 0;
  while (n < most && n < b->numBlocks && x[n].isFull && y[n].isFull && x[n].place == y[n].place &&
         x[n].slot == y[n].slot)
    n++;
  return n;
}

/** Whether the attention of all rows of a span is needed: in the last layer, only of those with logits. */
static int is_whole(const Step *step, const Span *span, int isLast) {
  int count = 0;
  for (int i = 0; i < step->numLogits; i++)
    count += step->logitRows[i] >= span->firstRow && step->logitRows[i] < span->firstRow + span->numRows;
  return !isLast || step->received || count == span->numRows;
}

/** The spans from `first` on that are worth an item together: most of their blocks are the same. */
static Item together(const Model *m, const Step *step, const View *view, int first, int isLast) {
  const Span *span = view->spans + first;
  Item item = {.firstSpan = first, .endSpan = first + 1, .firstRow = span->firstRow,
               .endRow = span->firstRow + span->numRows};
  int shared = span->numBlocks;
  for (int s = first + 1; s < step->numSpans && is_whole(step, view->spans + s, isLast); s++) {
    const Span *next = view->spans + s;
    shared = num_shared(view, span, next, shared);
    const int rows = item.endRow - item.firstRow + next->numRows;
    if (2 * shared < next->numBlocks || rows > MAX_ROWS ||
        (size_t)64 * next->numBlocks * rows * queries_per_row(m) > MAX_SCORES)
      break;
    item.endSpan = s + 1;
    item.endRow += next->numRows;
    item.numShared = shared;
  }
  return item;
}

static void add_items(Plan *plan, const Model *m, const View *view, Item item, int firstRow, int endRow) {
  item.firstRow = firstRow;
  item.endRow = endRow;
  Walk walk = walk_from_start(&item);
  Seen seen;
  while (walk_on(m, view, &item, &walk, &seen)) continue;
  item.numScores = walk.scores;
  for (item.kvHead = 0; item.kvHead < m->kvHeads; item.kvHead++) {
    const Item *last = plan->items + plan->numItems - 1;
    item.scoresAt = plan->numItems == 0 ? 0 : last->scoresAt + last->numScores;
    plan->items[plan->numItems++] = item;
  }
}

/** Splits the attention of all rows in a view, or of those with logits, into items and parts. */
static void split(Plan *plan, const Model *m, const Step *step, const View *view, int isLast, int threads) {
  plan->numItems = 0;
  for (int s = 0; s < step->numSpans;) {
    const Span *span = view->spans + s;
    if (is_whole(step, span, isLast)) {
      const Item item = together(m, step, view, s, isLast);
      const int rows = item.endSpan > s + 1 ? MAX_ROWS : rows_per_item(m, step, span);
      for (int row = item.firstRow; row < item.endRow; row += rows)
        add_items(plan, m, view, item, row, row + rows < item.endRow ? row + rows : item.endRow);
      s = item.endSpan;
      continue;
    }
    for (int i = 0; i < step->numLogits; i++)
      if (step->logitRows[i] >= span->firstRow && step->logitRows[i] < span->firstRow + span->numRows)
        add_items(plan, m, view, (Item){.firstSpan = s, .endSpan = s + 1}, step->logitRows[i], step->logitRows[i] + 1);
    s++;
  }
  size_t longest = 0;
  for (int i = 0; i < plan->numItems; i++) {
    const Item *item = plan->items + i;
    const size_t slots = item->numScores / ((item->endRow - item->firstRow) * queries_per_row(m));
    if (slots > longest) longest = slots;
  }
  const int wanted = plan->numItems ? (PARTS_PER_THREAD * threads + plan->numItems - 1) / plan->numItems : 1;
  const int most = longest / MIN_PART > MAX_PARTS ? MAX_PARTS : (int)(longest / MIN_PART);
  plan->numParts = wanted < most ? wanted : most;
  if (plan->numParts < 1 || threads == 1 || step->received) plan->numParts = 1;
}

/** Gives each field its bytes, from `at` on, or only counts them. Returns their sum. */
static size_t carve(char *at, void **const fields[], const size_t sizes[], int count) {
  size_t total = 0;
  for (int i = 0; i < count; i++) {
    if (at) *fields[i] = at + total;
    total += (sizes[i] + 63) / 64 * 64;
  }
  return total;
}

/** Memory of a part for Q queries of R rows. */
static size_t carve_part(char *at, Part *part, size_t Q, size_t R, size_t wide) {
  void **const fields[] = {(void **)&part->most, (void **)&part->largest, (void **)&part->shares.products,
                           (void **)&part->shares.powers, (void **)&part->shares.codeSums};
  const size_t sizes[] = {64 * Q, 64 * R, 8 * Q * wide, 64 * Q, 128 * Q};
  return carve(at, fields, sizes, 5);
}

static size_t carve_thread(char *at, AttendMemory *m, size_t Q, size_t R, size_t wide, size_t scores) {
  void **const fields[] = {(void **)&m->scores, (void **)&m->most, (void **)&m->largest, (void **)&m->list.codes,
                           (void **)&m->list.places, (void **)&m->mixed};
  const size_t sizes[] = {4 * scores, 4 * Q, 4 * R, 128 * Q, 8 * Q, 64 * wide};
  const size_t size = carve(at, fields, sizes, 6);
  return size + carve_part(at ? at + size : 0, &m->part, Q, R, wide);
}

static int prepare_memory(Run *run) {
  const Model *m = run->model;
  const int threads = threads_count(run->threads);
  const Plan *const plans[] = {run->plans + WHOLE, run->plans + NEAR, &run->lastPlan};
  const size_t Q1 = queries_per_row(m);
  size_t rows = 1, scores = 0, allScores = 0, numParts = 0;
  for (int p = 0; p < NUM_VIEWS + 1; p++) {
    const Plan *plan = plans[p];
    for (int i = 0; i < plan->numItems; i++) {
      const Item *item = plan->items + i;
      const size_t itsRows = run->step->received ? 1 : item->endRow - item->firstRow;
      if (itsRows > rows) rows = itsRows;
      const size_t most = run->step->received ? 64 * run->step->views[WHOLE].spans->numBlocks * Q1 : item->numScores;
      if (plan->numParts == 1 && most > scores) scores = most;
      if (plan->numParts > 1 && item->scoresAt + item->numScores > allScores)
        allScores = item->scoresAt + item->numScores;
    }
    if (plan->numParts > 1 && (size_t)plan->numItems * plan->numParts > numParts)
      numParts = (size_t)plan->numItems * plan->numParts;
  }
  const size_t Q = rows * Q1, wide = padded(m->headSize, 64);
  run->memory = workspace_get(run->space, BUFFER_THREAD, threads * sizeof *run->memory);
  if (!run->memory) return 1;
  for (int t = 0; t < threads; t++) {
    char *at = workspace_get(run->space, BUFFER_THREAD + 1 + t, carve_thread(0, run->memory, Q, rows, wide, scores));
    if (!at) return 1;
    carve_thread(at, run->memory + t, Q, rows, wide, scores);
  }
  if (numParts == 0) return 0;
  Part any;
  const size_t size = carve_part(0, &any, Q, rows, wide), list = (numParts * sizeof(Part) + 63) / 64 * 64;
  char *at = workspace_get(run->space, BUFFER_PARTS, list + numParts * size + 4 * allScores);
  if (!at) return 1;
  run->parts = (Part *)at;
  at += list;
  for (size_t i = 0; i < numParts; i++, at += size) carve_part(at, run->parts + i, Q, rows, wide);
  run->scores = (float *)at;
  return 0;
}

static int widest(const Model *m, int blocks) {
  int most = 0;
  for (int l = 0; l < m->numLayers; l++) {
    const Layer *layer = m->layers + l;
    const Linear *all[] = {&layer->qkv, &layer->o, &layer->up, &layer->down, &layer->router};
    for (int i = 0; i < 5; i++) {
      const int n = !blocks ? padded(all[i]->width, 64) : all[i]->bits == 4 ? all[i]->width / BLOCK4 : 1;
      if (n > most) most = n;
    }
  }
  const int head = !blocks ? padded(m->head.width, 64) : m->head.bits == 4 ? m->head.width / BLOCK4 : 1;
  return head > most ? head : most;
}

static int has_branch(const Model *m) {
  for (int l = 0; l < m->numLayers; l++)
    if (m->layers[l].norm1After.weight || m->layers[l].norm2After.weight) return 1;
  return 0;
}

/** Outputs of the widest layer that reads the hidden rows in the feed-forward part. */
static size_t act_stride(const Model *m) {
  int most = 0;
  for (int l = 0; l < m->numLayers; l++)
    if (m->layers[l].up.groups > most) most = m->layers[l].up.groups;
  return (size_t)most * GROUP;
}

/** The most slots that `rows` rows take: those of an expert are padded to a multiple of LANES_OF_ROWS. */
static size_t most_slots(const Model *m, size_t rows) {
  const size_t pairs = rows * m->numUsed, active = pairs < (size_t)m->numExperts ? pairs : (size_t)m->numExperts;
  return pairs + (LANES_OF_ROWS - 1) * active;
}

/** Returns 1 without memory, and for more slots than can be counted. */
static int prepare_experts(Run *run) {
  const Model *m = run->model;
  if (m->numExperts == 0) return 0;
  const size_t rows = run->numRows, slots = most_slots(m, rows), experts = m->numExperts, pairs = rows * m->numUsed;
  if (slots > INT32_MAX) return 1;
  run->routedStride = 2 * padded(m->numExperts, GROUP);
  run->sharesStride = padded(m->numUsed, 16);
  void **const fields[] = {(void **)&run->keptRows, (void **)&run->routed, (void **)&run->shares,
                           (void **)&run->chosen, (void **)&run->slotOf, (void **)&run->expertSlots,
                           (void **)&run->active, (void **)&run->slots};
  const size_t sizes[] = {4 * rows * run->hiddenStride, 8 * rows * run->routedStride, 4 * rows * run->sharesStride,
                          4 * pairs, 4 * pairs, 4 * experts, experts * sizeof(Active), slots * sizeof(Slot)};
  char *const at = workspace_get(run->space, BUFFER_EXPERTS, carve(0, fields, sizes, 8));
  run->outputs = workspace_get(run->space, BUFFER_OUTPUTS, 4 * slots * run->hiddenStride);
  if (!at || !run->outputs) return 1;
  carve(at, fields, sizes, 8);
  return 0;
}

/** Makes all buffers. Returns 1 without memory. */
static int prepare_run(Run *run) {
  const Model *m = run->model;
  const size_t rows = run->numRows, slots = most_slots(m, rows);
  // A router has two rows of codes for each row, and an expert a row of codes for each slot.
  const size_t codeRows = m->numExperts == 0 ? rows : slots > 2 * rows ? slots : 2 * rows;
  const size_t coded = (codeRows + MAX_TILE_ROWS - 1) / MAX_TILE_ROWS * MAX_TILE_ROWS;
  const int blocks = widest(m, 1);
  run->hiddenStride = padded(m->hidden, 16);
  run->qkvStride = m->layers->qkv.groups * GROUP;
  run->mixedStride = padded(m->heads * m->headSize, 16);
  run->actStride = act_stride(m);
  run->hidden = workspace_get(run->space, BUFFER_HIDDEN, 4 * rows * run->hiddenStride);
  run->normed = workspace_get(run->space, BUFFER_NORMED, 4 * threads_count(run->threads) * run->hiddenStride);
  if (has_branch(m)) run->branch = workspace_get(run->space, BUFFER_BRANCH, 4 * rows * run->hiddenStride);
  run->qkv = workspace_get(run->space, BUFFER_QKV, 4 * rows * run->qkvStride);
  run->mixed = workspace_get(run->space, BUFFER_MIXED, 4 * rows * run->mixedStride);
  run->act = workspace_get(run->space, BUFFER_ACT, 4 * (slots > rows ? slots : rows) * run->actStride);
  run->codes.codes = workspace_get(run->space, BUFFER_CODES, coded * widest(m, 0));
  run->codes.scales = workspace_get(run->space, BUFFER_SCALES, 4 * coded * blocks);
  run->codes.sums = workspace_get(run->space, BUFFER_SUMS, 4 * coded * blocks);
  const size_t queries = rows * m->heads, wide = padded(m->headSize, 64);
  void **const fields[] = {(void **)&run->queries.codes, (void **)&run->queries.scales, (void **)&run->queries.sums,
                           (void **)&run->queries.bias};
  const size_t sizes[] = {queries * wide, 4 * queries, 4 * queries, run->pool->rotations ? 4 * queries * wide : 64};
  char *const coding = workspace_get(run->space, BUFFER_QUERIES, carve(0, fields, sizes, 4));
  if (prepare_experts(run)) return 1;
  const size_t most = rows * m->kvHeads;
  Item *const items = workspace_get(run->space, BUFFER_ITEMS, (NUM_VIEWS + 1) * most * sizeof(Item));
  const Codes *codes = &run->codes;
  const int hasRows =
      run->hidden && run->normed && run->qkv && run->mixed && run->act && (run->branch || !has_branch(m));
  if (!hasRows || !codes->codes || !codes->scales || !codes->sums || !coding || !items) return 1;
  carve(coding, fields, sizes, 4);
  const Step *step = run->step;
  const int threads = threads_count(run->threads);
  for (int v = 0; v < NUM_VIEWS; v++) {
    run->plans[v] = (Plan){.items = items + v * most};
    if (step->views[v].spans) split(run->plans + v, m, step, step->views + v, 0, threads);
  }
  run->lastPlan.items = items + NUM_VIEWS * most;
  split(&run->lastPlan, m, step, step->views + m->layers[m->numLayers - 1].hasWindow, 1, threads);
  return prepare_memory(run);
}
