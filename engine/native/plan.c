/* See plan.h. Checks every size and index, so that the step need not. */
#include "plan.h"
#include <stdlib.h>
#include <string.h>

void free_work(Work *work) {
  if (!work) return;
  free(work->spans);
  free(work->blocks);
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

/**
 * Makes the blocks of a span. `index` [places * blocks of a place] is -1 everywhere, before and after. Returns the
 * number of blocks.
 */
static int make_blocks(const Pool *pool, const int32_t *places, const int32_t *context, int numContext,
                       const int32_t *newSlots, int numRows, int32_t *index, Block *blocks, int32_t *columns) {
  const int L = pool->pageSlots, perPlace = (L + 63) / 64;
  int count = 0;
  for (int i = 0; i < numContext + numRows; i++) {
    const int slot = placed(places, L, i < numContext ? context[i] : newSlots[i - numContext]);
    const int place = slot / L, inPlace = slot % L, at = place * perPlace + inPlace / 64;
    if (index[at] < 0) {
      index[at] = count;
      const int first = inPlace / 64 * 64;
      blocks[count] = (Block){.place = place, .slot = first, .size = L - first < 64 ? L - first : 64};
      for (int j = 0; j < 64; j++) blocks[count].from[j] = INT32_MAX;
      count++;
    }
    blocks[index[at]].from[inPlace % 64] = i < numContext ? 0 : i - numContext;
    if (columns) columns[i] = 64 * index[at] + inPlace % 64;
  }
  for (int b = 0; b < count; b++) {
    int isFull = blocks[b].size == 64, first = INT32_MAX;
    for (int j = 0; j < 64; j++) {
      const int32_t from = blocks[b].from[j];
      isFull &= from == 0;
      if (from < first) first = from;
    }
    blocks[b].isFull = isFull;
    blocks[b].first = first;
    index[blocks[b].place * perPlace + blocks[b].slot / 64] = -1;
  }
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
  const size_t T = a[IDS].length, half = m->headSize / 2, numSlots = (size_t)pool->numPlaces * pool->pageSlots;
  const size_t numSpans = a[SPANS].length / 2;
  if (T < 1 || T > MAX_SIZE || a[COS].length != T * half || a[SIN].length != T * half || a[NEW_SLOTS].length != T ||
      numSpans < 1 || a[PLACES].length != (size_t)pool->numPlaces)
    return "The arrays of a step have different sizes.";
  const int32_t *ids = a[IDS].data;
  for (size_t i = 0; i < T; i++)
    if (ids[i] < 0 || ids[i] >= m->vocab) return "A token id is not below the vocabulary size.";
  if (!are_slots(&a[PLACES], pool->numPlaces) || !are_slots(&a[CONTEXT_SLOTS], numSlots) ||
      !are_slots(&a[NEW_SLOTS], numSlots))
    return "A slot is not in the pool.";
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

/** Makes spans and blocks. Returns 0 without memory. */
static int plan_spans(Work *work, const Array *a, const Sizes *sizes) {
  const Pool *pool = &work->engine->pool;
  const size_t numSpans = a[SPANS].length / 2, perPlace = (pool->pageSlots + 63) / 64;
  const size_t allBlocks = perPlace * pool->numPlaces;
  const int32_t *places = a[PLACES].data, *context = a[CONTEXT_SLOTS].data, *newSlots = a[NEW_SLOTS].data;
  const int32_t *size = a[SPANS].data;
  int32_t *index = malloc(4 * allBlocks), *slots = malloc(4 * sizes->rows);
  work->step.slots = slots;
  work->spans = malloc(numSpans * sizeof *work->spans);
  work->blocks = malloc(sizes->blocks * sizeof *work->blocks);
  if (a[RECEIVED].length) work->columns = malloc(4 * (sizes->rows + sizes->context));
  const int isComplete = index && slots && work->spans && work->blocks && (!a[RECEIVED].length || work->columns);
  int row = 0, block = 0;
  if (isComplete) {
    memset(index, 0xff, 4 * allBlocks);
    for (size_t i = 0; i < sizes->rows; i++) slots[i] = placed(places, pool->pageSlots, newSlots[i]);
    for (size_t s = 0; s < numSpans; s++, size += 2) {
      const int made = make_blocks(pool, places, context, size[1], newSlots + row, size[0], index,
                                   work->blocks + block, work->columns);
      work->spans[s] = (Span){row, size[0], block, made};
      context += size[1];
      row += size[0];
      block += made;
    }
  }
  free(index);
  if (!isComplete || !work->columns) return isComplete;
  const Model *m = &work->engine->model;
  work->numColumns = (int)(sizes->rows + sizes->context);
  work->columnsReceived = calloc(2 * (size_t)m->numLayers * m->kvHeads * 64 * block, 4);
  return work->columnsReceived != 0;
}

const char *plan_step(Work *work, const Array *a) {
  Sizes sizes;
  const char *problem = check_step(work->engine, a, &sizes);
  if (problem) return problem;
  if (!plan_spans(work, a, &sizes)) return "There is not enough memory for a step.";
  Step *step = &work->step;
  step->numRows = (int)sizes.rows;
  step->numSpans = (int)(a[SPANS].length / 2);
  step->numLogits = (int)a[LOGIT_ROWS].length;
  step->numQueries = (int)a[QUERY_ROWS].length;
  step->ids = a[IDS].data;
  step->cos = a[COS].data;
  step->sin = a[SIN].data;
  step->spans = work->spans;
  step->blocks = work->blocks;
  step->logitRows = a[LOGIT_ROWS].data;
  step->queryRows = a[QUERY_ROWS].data;
  step->logits = a[LOGITS].data;
  step->queries = a[QUERIES].length ? a[QUERIES].data : 0;
  step->received = work->columnsReceived;
  work->received = a[RECEIVED].data;
  return 0;
}
