/* The step, compiled once per instruction set (see kernels.c for the choice). */
#include "step.h"
#include <stdlib.h>
#include "attention.h"
#include "products.h"

#define NAME2(a, b) a##b
#define NAME1(a, b) NAME2(a, b)
#define STRING2(a) #a
#define STRING1(a) STRING2(a)

/** Most scores of one thread, unless one row has more: a part of the L2 cache. */
enum { MAX_SCORES = 128 * 1024, MAX_ROWS = 16 };

enum { BUFFER_HIDDEN, BUFFER_QKV, BUFFER_MIXED, BUFFER_ACT, BUFFER_CODES, BUFFER_SCALES, BUFFER_SUMS, BUFFER_ITEMS,
       BUFFER_THREAD };

/** Rows firstRow .. endRow-1 of a span for one KV head. */
typedef struct {
  int span, firstRow, endRow, kvHead;
} Item;

typedef struct {
  const Model *model;
  const Pool *pool;
  const Step *step;
  Threads *threads;
  Workspace *space;
  /** Rows that are computed: all, or those with logits after the last attention. */
  int numRows;
  int l;
  float *hidden, *qkv, *mixed, *act;
  size_t hiddenStride, qkvStride, mixedStride, actStride;
  Codes codes;
  Item *items;
  int numItems;
  AttendMemory *memory;
  /** Of the running phase. */
  const Linear *linear;
  const float *input, *norm;
  size_t inputStride;
  int inputSize, chunkSize;
  float *output;
  size_t outputStride;
  int adds;
} Run;

/** Groups of a chunk: several chunks a thread, so that a slow thread does not hold up the others for long. */
static int groups_per_chunk(const Run *run, int groups) {
  const int size = groups / (8 * threads_count(run->threads));
  return size < 1 ? 1 : size > 64 ? 64 : (size + 1) / 2 * 2;
}

static void each(Run *run, int count, int chunkSize, Chunk chunk) {
  run->chunkSize = chunkSize;
  threads_run(run->threads, (count + chunkSize - 1) / chunkSize, chunk, run);
}

static int rows_per_chunk(const Run *run) {
  const int size = run->numRows / (4 * threads_count(run->threads));
  // A few rows are faster on one thread than a job for all.
  return size < 4 ? 4 : size;
}

#define FOR_CHUNK(i, count)                                                                        \
  for (int i = chunk * run->chunkSize,                                                             \
           end_ = i + run->chunkSize < (count) ? i + run->chunkSize : (count);                     \
       i < end_; i++)

static void embed_rows(void *context, int chunk, int thread) {
  (void)thread;
  const Run *run = context;
  const Model *m = run->model;
  FOR_CHUNK(row, run->numRows) {
    const size_t id = (size_t)run->step->ids[row];
    const int16_t *codes = m->embedding + id * m->hidden;
    const float scale = m->embeddingScales[id];
    float *h = run->hidden + row * run->hiddenStride;
    for (int i = 0; i < m->hidden; i++) h[i] = (float)codes[i] * scale;
    for (size_t i = m->hidden; i < run->hiddenStride; i++) h[i] = 0;
  }
}

/** x / rms(x) * weight; weight null: 1. n is a multiple of 16 with zeros behind `size`. */
static void rms_norm(const float *x, const float *weight, int n, int size, float epsilon, float *out) {
  v16f squares = {};
  for (int i = 0; i < n; i += 16) {
    const v16f v = load_f(x + i);
    squares += v * v;
  }
  const float factor = 1 / __builtin_sqrtf(sum_of_f(squares) / (float)size + epsilon);
  for (int i = 0; i < n; i += 16) store_f(out + i, load_f(x + i) * factor * (weight ? load_f(weight + i) : splat_f(1)));
}

static void code_rows(void *context, int chunk, int thread) {
  (void)thread;
  Run *run = context;
  const int wide = padded(run->inputSize, 16);
  float normed[wide];
  FOR_CHUNK(row, run->numRows) {
    const float *x = run->input + row * run->inputStride;
    if (run->norm) {
      rms_norm(x, run->norm, wide, run->inputSize, run->model->epsilon, normed);
      x = normed;
    }
    code_row(run->linear, x, run->inputSize, &run->codes, row);
  }
}

/** Codes `size` numbers a row, divided by their root mean square if there is a norm, for the layer. */
static void code(Run *run, const Linear *linear, const float *input, size_t stride, int size, const float *norm) {
  run->linear = linear;
  run->input = input;
  run->inputStride = stride;
  run->inputSize = size;
  run->norm = norm;
  run->codes.stride = padded(linear->width, 64);
  run->codes.numBlocks = linear->bits == 4 ? linear->width / BLOCK4 : 1;
  each(run, run->numRows, rows_per_chunk(run), code_rows);
}

static void multiply_groups(void *context, int chunk, int thread) {
  (void)thread;
  const Run *run = context;
  const int from = chunk * run->chunkSize, groups = run->linear->groups;
  const int to = from + run->chunkSize < groups ? from + run->chunkSize : groups;
  product(run->linear, from, to, &run->codes, run->numRows, run->output, run->outputStride, run->adds);
}

/** output (+)= the coded rows times the layer. */
static void multiply(Run *run, const Linear *linear, float *output, size_t stride, int adds) {
  run->linear = linear;
  run->output = output;
  run->outputStride = stride;
  run->adds = adds;
  each(run, linear->groups, groups_per_chunk(run, linear->groups), multiply_groups);
}

static void gate_groups(void *context, int chunk, int thread) {
  (void)thread;
  const Run *run = context;
  const Layer *layer = run->model->layers + run->l;
  const int from = chunk * run->chunkSize, groups = layer->gate.groups;
  const int to = from + run->chunkSize < groups ? from + run->chunkSize : groups;
  gated_product(layer, from, to, &run->codes, run->numRows, run->act, run->actStride);
}

static void rotate(float *x, int D, const float *cos, const float *sin) {
  const int half = D / 2;
  for (int i = 0; i < half; i++) {
    const float a = x[i], b = x[i + half];
    x[i] = a * cos[i] - b * sin[i];
    x[i + half] = b * cos[i] + a * sin[i];
  }
}

/** Codes `size` numbers into out[i * step]. */
static void code_head(const float *x, int size, int8_t *out, size_t step, float *scale) {
  const int wide = padded(size, 16);
  float row[wide];
  int8_t codes[wide];
  int32_t sum;
  memset(row, 0, sizeof row);
  memcpy(row, x, 4 * size);
  code_part(row, wide, codes, scale, &sum);
  for (int i = 0; i < size; i++) out[i * step] = codes[i];
}

/** Norms and rotates queries and keys, and writes the new rows into the pool. */
static void write_rows(void *context, int chunk, int thread) {
  (void)thread;
  const Run *run = context;
  const Model *m = run->model;
  const Layer *layer = m->layers + run->l;
  const PoolLayer *pool = run->pool->layers + run->l;
  const int D = m->headSize, L = run->pool->pageSlots, wide = padded(D, 16);
  float head[wide];
  FOR_CHUNK(row, run->numRows) {
    float *x = run->qkv + row * run->qkvStride;
    for (int h = 0; h < m->heads + m->kvHeads; h++) {
      if (layer->qkNorm) {
        memset(head, 0, sizeof head);
        memcpy(head, x + h * D, 4 * D);
        rms_norm(head, 0, wide, D, m->epsilon, head);
        for (int d = 0; d < D; d++) x[h * D + d] = head[d] * layer->qkNorm[h * D + d];
      }
      rotate(x + h * D, D, run->step->cos + (size_t)row * (D / 2), run->step->sin + (size_t)row * (D / 2));
    }
    const int place = run->step->slots[row] / L, slot = run->step->slots[row] % L;
    for (int h = 0; h < m->kvHeads; h++) {
      const size_t at = (size_t)place * m->kvHeads + h;
      const float *key = x + (m->heads + h) * D, *value = key + m->kvHeads * D;
      code_head(key, D, pool->keys + at * D * L + slot, L, pool->keyScales + at * L + slot);
      code_head(value, D, pool->values + (at * L + slot) * D, 1, pool->valueScales + at * L + slot);
    }
  }
}

static void attend_item(void *context, int chunk, int thread) {
  const Run *run = context;
  const Model *m = run->model;
  const Step *step = run->step;
  const Item *item = run->items + chunk;
  const Span *span = step->spans + item->span;
  Attend a = {m, run->pool, run->pool->layers + run->l, m->layers + run->l, span, step->blocks, item->firstRow,
              item->endRow, item->kvHead, run->qkv, run->qkvStride, run->mixed, run->mixedStride, 0, 0};
  if (!step->received) {
    attend(&a, run->memory + thread);
    return;
  }
  // Row by row in order, because sums of floats depend on it.
  const size_t slots = (size_t)64 * span->numBlocks, heads = (size_t)m->numLayers * m->kvHeads;
  a.most = step->received + ((size_t)run->l * m->kvHeads + item->kvHead) * slots;
  a.sum = a.most + heads * slots;
  for (int row = item->firstRow; row < item->endRow; row++) {
    a.firstRow = row;
    a.endRow = row + 1;
    attend(&a, run->memory + thread);
  }
}

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
  run->qkv = workspace_get(run->space, BUFFER_QKV, 4 * rows * run->qkvStride);
  run->mixed = workspace_get(run->space, BUFFER_MIXED, 4 * rows * run->mixedStride);
  run->act = workspace_get(run->space, BUFFER_ACT, 4 * rows * run->actStride);
  run->codes.codes = workspace_get(run->space, BUFFER_CODES, rows * widest(m, 0));
  run->codes.scales = workspace_get(run->space, BUFFER_SCALES, 4 * rows * blocks);
  run->codes.sums = workspace_get(run->space, BUFFER_SUMS, 4 * rows * blocks);
  const int all = split(m, run->step, 0, 0), last = split(m, run->step, 1, 0);
  run->items = workspace_get(run->space, BUFFER_ITEMS, (size_t)(all > last ? all : last) * sizeof(Item));
  if (!run->hidden || !run->qkv || !run->mixed || !run->act || !run->codes.codes || !run->codes.scales ||
      !run->codes.sums || !run->items)
    return 1;
  run->numItems = split(m, run->step, 0, run->items);
  return prepare_memory(run);
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
    code(&run, &layer->qkv, run.hidden, run.hiddenStride, m->hidden, layer->norm1);
    multiply(&run, &layer->qkv, run.qkv, run.qkvStride, 0);
    each(&run, run.numRows, rows_per_chunk(&run), write_rows);
    if (step->queries) copy_queries(&run);
    if (isLast && step->numLogits == 0 && !step->received) return 0;
    if (isLast && !step->received) run.numItems = split(m, step, 1, run.items);
    each(&run, run.numItems, 1, attend_item);
    if (isLast) keep_logit_rows(&run);
    if (run.numRows == 0) return 0;
    code(&run, &layer->o, run.mixed, run.mixedStride, m->heads * m->headSize, 0);
    multiply(&run, &layer->o, run.hidden, run.hiddenStride, 1);
    code(&run, &layer->gate, run.hidden, run.hiddenStride, m->hidden, layer->norm2);
    each(&run, layer->gate.groups, groups_per_chunk(&run, layer->gate.groups), gate_groups);
    code(&run, &layer->down, run.act, run.actStride, m->ffn, 0);
    multiply(&run, &layer->down, run.hidden, run.hiddenStride, 1);
  }
  code(&run, &m->head, run.hidden, run.hiddenStride, m->hidden, m->norm);
  const size_t stride = (size_t)m->head.groups * GROUP;
  multiply(&run, &m->head, step->logits, stride, 0);
  if (stride != (size_t)m->vocab)
    for (int i = 1; i < step->numLogits; i++)
      memmove(step->logits + (size_t)i * m->vocab, step->logits + i * stride, 4 * (size_t)m->vocab);
  return 0;
}

const Kernels NAME1(kernels_, ISA) = {STRING1(ISA), run_step};
