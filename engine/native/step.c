/* The step, compiled once per instruction set (see kernels.c for the choice). */
#include "step.h"
#include <stdlib.h>
#include "buffers.h"
#include "experts.h"

#define NAME2(a, b) a##b
#define NAME1(a, b) NAME2(a, b)
#define STRING2(a) #a
#define STRING1(a) STRING2(a)

static Attend attend_of(const Run *run, const Item *item) {
  const Model *m = run->model;
  const int G = m->heads / m->kvHeads;
  const size_t query = ((size_t)item->kvHead * run->step->numRows + item->firstRow) * G;
  return (Attend){.model = m,
                  .pool = run->pool,
                  .rows = run->pool->layers + run->l,
                  .layer = m->layers + run->l,
                  .view = run->step->views + m->layers[run->l].hasWindow,
                  .item = item,
                  .queries = queries_from(&run->queries, query, padded(m->headSize, 64)),
                  .out = run->mixed,
                  .outStride = run->mixedStride};
}

static void attend_item(void *context, int chunk, int thread) {
  const Run *run = context;
  const Model *m = run->model;
  const Step *step = run->step;
  Item item = run->plan->items[chunk];
  Attend a = attend_of(run, &item);
  if (!step->received) {
    attend(&a, run->memory + thread);
    return;
  }
  // Row by row in order, because sums of floats depend on it.
  const size_t slots = (size_t)64 * step->views[WHOLE].spans->numBlocks, heads = (size_t)m->numLayers * m->kvHeads;
  const int end = item.endRow;
  for (; item.firstRow < end; item.firstRow++) {
    item.endRow = item.firstRow + 1;
    a = attend_of(run, &item);
    a.most = step->received + ((size_t)run->l * m->kvHeads + item.kvHead) * slots;
    a.sum = a.most + heads * slots;
    attend(&a, run->memory + thread);
  }
}

static void score_chunk(void *context, int chunk, int thread) {
  const Run *run = context;
  const int numParts = run->plan->numParts;
  const Item *item = run->plan->items + chunk / numParts;
  const Attend a = attend_of(run, item);
  score_part(&a, chunk % numParts, numParts, run->scores + item->scoresAt, run->parts + chunk,
             run->memory[thread].mixed);
}

static void share_chunk(void *context, int chunk, int thread) {
  const Run *run = context;
  const int numParts = run->plan->numParts;
  const Item *item = run->plan->items + chunk / numParts;
  const Attend a = attend_of(run, item);
  share_part(&a, chunk % numParts, numParts, run->scores + item->scoresAt, run->parts + chunk / numParts * numParts,
             &run->parts[chunk].shares, run->memory + thread);
}

static void finish_chunk(void *context, int chunk, int thread) {
  const Run *run = context;
  const AttendMemory *m = run->memory + thread;
  FOR_CHUNK(i, run->plan->numItems) {
    const Attend a = attend_of(run, run->plan->items + i);
    finish_item(&a, run->parts + i * run->plan->numParts, run->plan->numParts, m->most, m->largest);
  }
}

static void attend_all(Run *run) {
  const int numItems = run->plan->numItems, numParts = run->plan->numParts;
  if (numParts == 1) {
    each(run, numItems, 1, attend_item);
    return;
  }
  each(run, numItems * numParts, 1, score_chunk);
  each(run, numItems * numParts, 1, share_chunk);
  each(run, numItems, 4, finish_chunk);
}

static void copy_queries(const Run *run) {
  const Model *m = run->model;
  const Step *step = run->step;
  for (int h = 0; h < m->heads; h++)
    for (int i = 0; i < step->numQueries; i++)
      memcpy(step->queries + (((size_t)run->l * m->heads + h) * step->numQueries + i) * m->headSize,
             run->qkv + step->queryRows[i] * run->qkvStride + (size_t)h * m->headSize, 4 * m->headSize);
}

/** Keeps only the rows whose logits are wanted. */
static void keep_logit_rows(Run *run) {
  for (int i = 0; i < run->step->numLogits; i++) {
    const size_t row = run->step->logitRows[i];
    memmove(run->hidden + i * run->hiddenStride, run->hidden + row * run->hiddenStride, 4 * run->hiddenStride);
    memmove(run->mixed + i * run->mixedStride, run->mixed + row * run->mixedStride, 4 * run->mixedStride);
  }
  run->numRows = run->step->numLogits;
}

static int run_step(const Model *m, const Pool *pool, const Step *step, Threads *threads, Workspace *space) {
  Run run = {.model = m, .pool = pool, .step = step, .threads = threads, .space = space, .numRows = step->numRows};
  if (prepare_run(&run)) return 1;
  each(&run, run.numRows, rows_per_chunk(&run), embed_rows);
  for (int l = 0; l < m->numLayers; l++) {
    const Layer *layer = m->layers + l;
    const int isLast = l == m->numLayers - 1;
    run.l = l;
    code_hidden(&run, &layer->qkv, &layer->norm1);
    multiply(&run, &layer->qkv, run.qkv, run.qkvStride, 0);
    each(&run, run.numRows, rows_per_chunk(&run), write_rows);
    if (step->queries) copy_queries(&run);
    if (isLast && step->numLogits == 0 && !step->received) return 0;
    run.plan = isLast ? &run.lastPlan : run.plans + layer->hasWindow;
    attend_all(&run);
    if (isLast) keep_logit_rows(&run);
    if (run.numRows == 0) return 0;
    code(&run, &layer->o, run.mixed, run.mixedStride, m->heads * m->headSize);
    add(&run, &layer->o, &layer->norm1After);
    if (layer->router.weights) {
      mix_experts(&run, layer);
      continue;
    }
    code_hidden(&run, &layer->up, &layer->norm2);
    feed_forward(&run, layer);
    code(&run, &layer->down, run.act, run.actStride, m->ffn);
    add(&run, &layer->down, &layer->norm2After);
  }
  code_hidden(&run, &m->head, &m->norm);
  if (m->logitCap > 0) run.finish = CAPPED;
  const size_t stride = (size_t)m->head.groups * GROUP;
  multiply(&run, &m->head, step->logits, stride, 0);
  if (stride != (size_t)m->vocab)
    for (int i = 1; i < step->numLogits; i++)
      memmove(step->logits + (size_t)i * m->vocab, step->logits + i * stride, 4 * (size_t)m->vocab);
  return 0;
}

const Kernels NAME1(kernels_, ISA) = {STRING1(ISA), NEEDS, run_step};
