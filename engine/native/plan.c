/* See plan.h. Checks every size and index, so that the step need not. */
#include "plan.h"
#include <stdlib.h>
#include <string.h>

void free_work(Work *work) {
  if (!work) return;
  for (int v = 0; v < NUM_VIEWS; v++) {
    free(work->spans[v]);
    free(work->blocks[v]);
  }
  free(work->untils);
  free(work->columns);
  free(work->columnsReceived);
  free((void *)work->step.slots);
  free(work);
}

static int are_rows(const Array *rows, int numRows) {
  const int32_t *row = rows->data;
  for (size_t i = 0; i < rows->length; i++)
    if (row[i] < 0 || row[i] >= numRows || (i > 0 && row[i] <= row[i - 1])) return 0;
  return 1;
}

static int are_slots(const Array *slots, size_t numSlots) {
  const int32_t *slot = slots->data;
  for (size_t i = 0; i < slots->length; i++)
    if (slot[i] < 0 || (size_t)slot[i] >= numSlots) return 0;
  return 1;
}

static int32_t placed(const int32_t *places, int L, int32_t slot) { return places[slot / L] * L + slot % L; }

/** What a span is made from. */
typedef struct {
  const int32_t *context, *newSlots;
  int numContext, numRows;
  const int32_t *places;
  /** Of all slots, for NEAR. Else null. */
  const int32_t *positions;
  int window;
  /** Also blocks that no row sees. */
  int keepsAll;
} Sources;

/** The row behind the last one that sees slot i of the span: the token is out of the window from there on. */
static int32_t until_of(const Sources *s, int i) {
  if (!s->positions) return s->numRows;
  const int64_t distance = i < s->numContext
                               ? (int64_t)s->positions[s->context[i]] - s->positions[s->newSlots[0]]
                               : i - s->numContext;
  const int64_t until = distance + s->window;
  return until < 0 ? 0 : until > s->numRows ? s->numRows : (int32_t)until;
}

/** Finds out who sees each block. */
static void finish_blocks(const Sources *s, Block *blocks, int count) {
  for (int b = 0; b < count; b++) {
    Block *block = blocks + b;
    block->isFull = block->size == 64;
    block->first = INT32_MAX;
    block->end = s->positions ? 0 : s->numRows;
    for (int j = 0; j < 64; j++) {
      const int32_t from = block->from[j], until = block->until ? block->until[j] : s->numRows;
      block->isFull &= from == 0 && until == s->numRows;
      if (from < block->first) block->first = from;
      if (until > block->end) block->end = until;
    }
  }
}

/**
 * Makes the blocks of a span. `index` [places * blocks of a place] is -1 everywhere, before and after. `untils`: memory
 * for those of NEAR, or null. Returns the number of blocks.
 */
static int make_blocks(const Pool *pool, const Sources *s, int32_t *index, Block *blocks, int32_t *untils,
                       int32_t *columns) {
  const int L = pool->pageSlots, perPlace = (L + 63) / 64;
  int count = 0;
  for (int i = 0; i < s->numContext + s->numRows; i++) {
    const int32_t until = until_of(s, i);
    if (until == 0 && !s->keepsAll) continue;
    const int slot = placed(s->places, L, i < s->numContext ? s->context[i] : s->newSlots[i - s->numContext]);
    const int place = slot / L, inPlace = slot % L, at = place * perPlace + inPlace / 64;
    if (index[at] < 0) {
      index[at] = count;
      const int first = inPlace / 64 * 64;
      blocks[count] = (Block){.place = place, .slot = first, .size = L - first < 64 ? L - first : 64};
      for (int j = 0; j < 64; j++) blocks[count].from[j] = INT32_MAX;
      if (untils) blocks[count].until = memset(untils + (size_t)64 * count, 0, 256);
      count++;
    }
    const int b = index[at];
    if (until > 0) blocks[b].from[inPlace % 64] = i < s->numContext ? 0 : i - s->numContext;
    if (untils) untils[(size_t)64 * b + inPlace % 64] = until;
    if (columns) columns[i] = 64 * b + inPlace % 64;
  }
  finish_blocks(s, blocks, count);
  for (int b = 0; b < count; b++) index[blocks[b].place * perPlace + blocks[b].slot / 64] = -1;
  return count;
}

/** Rows, slots of contexts, and blocks of a step; the last are an upper bound. */
typedef struct {
  size_t rows, context, blocks;
} Sizes;

/** Checks the spans. Returns a problem, or null. */
static const char *check_spans(const Array *a, const Pool *pool, Sizes *sizes) {
  const int32_t *span = a[SPANS].data;
  const size_t perPlace = (pool->pageSlots + 63) / 64, most = perPlace * pool->numPlaces;
  *sizes = (Sizes){0, 0, 0};
  for (size_t s = 0; s < a[SPANS].length / 2; s++, span += 2) {
    if (span[0] < 1 || span[1] < 0) return "A span is empty.";
    const size_t slots = (size_t)span[0] + span[1];
    sizes->rows += span[0];
    sizes->context += span[1];
    sizes->blocks += slots < most ? slots : most;
  }
  if (sizes->rows != a[IDS].length || sizes->context != a[CONTEXT_SLOTS].length)
    return "The spans have other sizes than the arrays.";
  return 0;
}

/** Checks all arguments of a step. Returns a problem, or null. */
static const char *check_step(const Engine *engine, const Array *a, Sizes *sizes) {
  const Model *m = &engine->model;
  const Pool *pool = &engine->pool;
  const size_t T = a[IDS].length, angles = T * (m->headSize / 2) * (m->hasLocalRope ? 2 : 1);
  const size_t numSlots = (size_t)pool->numPlaces * pool->pageSlots;
  const size_t numSpans = a[SPANS].length / 2;
  if (T < 1 || T > MAX_SIZE || a[COS].length != angles || a[SIN].length != angles || a[NEW_SLOTS].length != T ||
      numSpans < 1 || a[PLACES].length != (size_t)pool->numPlaces)
    return "The arrays of a step have different sizes.";
  const int32_t *ids = a[IDS].data;
  for (size_t i = 0; i < T; i++)
    if (ids[i] < 0 || ids[i] >= m->vocab) return "A token id is not below the vocabulary size.";
  if (!are_slots(&a[PLACES], pool->numPlaces) || !are_slots(&a[CONTEXT_SLOTS], numSlots) ||
      !are_slots(&a[NEW_SLOTS], numSlots))
    return "A slot is not in the pool.";
  if (m->window > 0 && a[POSITIONS].length < numSlots) return "A slot has no position.";
  if (!are_rows(&a[LOGIT_ROWS], (int)T) || !are_rows(&a[QUERY_ROWS], (int)T)) return "A row is not in the step.";
  if (a[LOGITS].length < a[LOGIT_ROWS].length * m->head.groups * GROUP) return "The logits need more memory.";
  if (a[QUERIES].length != a[QUERY_ROWS].length * m->numLayers * m->heads * m->headSize)
    return "The queries have another size.";
  const char *problem = check_spans(a, pool, sizes);
  if (problem) return problem;
  const size_t numReceived = 2 * (size_t)m->numLayers * m->kvHeads * (T + sizes->context);
  if (a[RECEIVED].length != 0 && (numSpans != 1 || a[RECEIVED].length != numReceived))
    return "Attention is measured for one span.";
  return 0;
}

/** Makes the spans and blocks of a view. `index`: see make_blocks. Returns 0 without memory. */
static int plan_view(Work *work, const Array *a, const Sizes *sizes, int view, int32_t *index) {
  const Engine *engine = work->engine;
  const size_t numSpans = a[SPANS].length / 2;
  Span *const spans = work->spans[view] = malloc(numSpans * sizeof *spans);
  Block *const blocks = work->blocks[view] = malloc(sizes->blocks * sizeof *blocks);
  if (view == NEAR) work->untils = malloc(256 * sizes->blocks);
  if (!spans || !blocks || (view == NEAR && !work->untils)) return 0;
  Sources sources = {.context = a[CONTEXT_SLOTS].data, .newSlots = a[NEW_SLOTS].data, .places = a[PLACES].data,
                     .positions = view == NEAR ? a[POSITIONS].data : 0, .window = engine->model.window,
                     .keepsAll = a[RECEIVED].length > 0};
  const int32_t *size = a[SPANS].data;
  int row = 0, block = 0;
  for (size_t s = 0; s < numSpans; s++, size += 2) {
    sources.numRows = size[0];
    sources.numContext = size[1];
    int32_t *const untils = view == NEAR ? work->untils + (size_t)64 * block : 0;
    const int made = make_blocks(&engine->pool, &sources, index, blocks + block, untils, work->columns);
    spans[s] = (Span){row, size[0], block, made};
    sources.context += size[1];
    sources.newSlots += size[0];
    row += size[0];
    block += made;
  }
  work->step.views[view] = (View){spans, blocks};
  return 1;
}

/** Makes all views, and what is only for measured attention. Returns 0 without memory. */
static int plan_views(Work *work, const Array *a, const Sizes *sizes) {
  const Engine *engine = work->engine;
  const Model *m = &engine->model;
  const size_t allBlocks = (size_t)(engine->pool.pageSlots + 63) / 64 * engine->pool.numPlaces;
  int32_t *const index = malloc(4 * allBlocks), *const slots = malloc(4 * sizes->rows);
  work->step.slots = slots;
  if (a[RECEIVED].length) work->columns = malloc(4 * (sizes->rows + sizes->context));
  int isComplete = index && slots && (!a[RECEIVED].length || work->columns);
  if (isComplete) {
    memset(index, 0xff, 4 * allBlocks);
    const int32_t *newSlots = a[NEW_SLOTS].data;
    for (size_t i = 0; i < sizes->rows; i++) slots[i] = placed(a[PLACES].data, engine->pool.pageSlots, newSlots[i]);
    for (int v = 0; v < (m->window > 0 ? NUM_VIEWS : 1) && isComplete; v++)
      isComplete = plan_view(work, a, sizes, v, index);
  }
  free(index);
  if (!isComplete || !work->columns) return isComplete;
  work->numColumns = (int)(sizes->rows + sizes->context);
  work->columnsReceived = calloc(2 * (size_t)m->numLayers * m->kvHeads * 64 * work->spans[WHOLE]->numBlocks, 4);
  return work->columnsReceived != 0;
}

const char *plan_step(Work *work, const Array *a) {
  Sizes sizes;
  const char *problem = check_step(work->engine, a, &sizes);
  if (problem) return problem;
  if (!plan_views(work, a, &sizes)) return "There is not enough memory for a step.";
  Step *step = &work->step;
  step->numRows = (int)sizes.rows;
  step->numSpans = (int)(a[SPANS].length / 2);
  step->numLogits = (int)a[LOGIT_ROWS].length;
  step->numQueries = (int)a[QUERY_ROWS].length;
  step->ids = a[IDS].data;
  step->cos = a[COS].data;
  step->sin = a[SIN].data;
  step->logitRows = a[LOGIT_ROWS].data;
  step->queryRows = a[QUERY_ROWS].data;
  step->logits = a[LOGITS].data;
  step->queries = a[QUERIES].length ? a[QUERIES].data : 0;
  step->received = work->columnsReceived;
  work->received = a[RECEIVED].data;
  return 0;
}
