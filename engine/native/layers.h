/* Everything of a layer except attention: norms, codes, products and the new rows of the pool. Included by step.c. */
#pragma once
#include "run.h"

/** The numbers of the lanes of a vector. */
static const v16i LANES_16 = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

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

/** 16 numbers of which `n` are there, and zeros. */
ALWAYS v16f load_first(const float *p, int n) {
  if (n >= 16) return load_f(p);
  v16f v = {};
  memcpy(&v, p, 4 * n);
  return v;
}

static float factor_of(v16f squares, int size, float epsilon) {
  return 1 / __builtin_sqrtf(sum_of_f(squares) / (float)size + epsilon);
}

/** The norm of a row of the model, x / rms(x) * weight. There are zeros behind `size`, also in `out`. */
ONCE void normalise(const float *x, const Norm *norm, int size, float epsilon, float *out) {
  v16f sums = {}, squares = {};
  for (int i = 0; i < size && norm->bias; i += 16) sums += load_f(x + i);
  const float mean = norm->bias ? sum_of_f(sums) / (float)size : 0;
  for (int i = 0; i < size; i += 16) {
    // Behind the end there is no difference from the mean.
    const v16f inside = select_f(LANES_16 < size - i, load_f(x + i) - mean, splat_f(0));
    squares += inside * inside;
    store_f(out + i, inside);
  }
  const float factor = factor_of(squares, size, epsilon);
  for (int i = 0; i < size; i += 16) {
    const v16f y = load_f(out + i) * factor * load_f(norm->weight + i);
    store_f(out + i, norm->bias ? y + load_f(norm->bias + i) : y);
  }
}

/** The norm of a part of a row, in place: x / rms(x) * weight. */
ONCE void normalise_part(float *x, const float *weight, int size, float epsilon) {
  v16f squares = {};
  for (int i = 0; i < size; i += 16) {
    const v16f v = load_first(x + i, size - i);
    squares += v * v;
  }
  const float factor = factor_of(squares, size, epsilon);
  for (int i = 0; i < size; i += 16) {
    const v16f y = load_first(x + i, size - i) * factor * load_first(weight + i, size - i);
    memcpy(x + i, &y, size - i < 16 ? 4 * (size - i) : 64);
  }
}

static void code_rows(void *context, int chunk, int thread) {
  Run *run = context;
  FOR_CHUNK(row, run->numRows) {
    float *const normed =
        run->kept ? run->kept + row * run->hiddenStride : run->normed + thread * run->hiddenStride;
    const float *x = run->input + row * run->inputStride;
    if (run->after) {
      float *h = run->hidden + row * run->hiddenStride;
      normalise(run->branch + row * run->hiddenStride, run->after, run->inputSize, run->model->epsilon, normed);
      for (size_t i = 0; i < run->hiddenStride; i += 16) store_f(h + i, load_f(h + i) + load_f(normed + i));
    }
    if (run->norm) {
      normalise(x, run->norm, run->inputSize, run->model->epsilon, normed);
      x = normed;
    }
    if (!run->kept) {
      code_row(run->linear, x, run->inputSize, &run->codes, row);
      continue;
    }
    float *const copy = run->normed + thread * run->hiddenStride;
    memcpy(copy, x, 4 * run->hiddenStride);
    code_finely(run->linear, copy, run->inputSize, &run->codes, 2 * row);
  }
}

/** Sets what is coded next: `size` numbers a row for the layer. */
static void take_input(Run *run, const Linear *linear, const float *input, size_t stride, int size) {
  run->linear = linear;
  run->input = input;
  run->inputStride = stride;
  run->inputSize = size;
  run->codes.stride = padded(linear->width, 64);
  run->codes.numBlocks = linear->bits == 4 ? linear->width / BLOCK4 : 1;
}

/** Codes `size` numbers a row for the layer. If the rows are kept, in two rows. */
static void code(Run *run, const Linear *linear, const float *input, size_t stride, int size) {
  take_input(run, linear, input, stride, size);
  run->codes.together = run->numRows * (run->kept ? 2 : 1) < LANES_OF_ROWS ? 1 : LANES_OF_ROWS;
  each(run, run->numRows, rows_per_chunk(run), code_rows);
}

/** Completes the hidden rows, and codes their norms, if there is one, for the layer. */
static void code_hidden(Run *run, const Linear *linear, const Norm *norm) {
  run->norm = norm->weight ? norm : 0;
  code(run, linear, run->hidden, run->hiddenStride, run->model->hidden);
  run->norm = run->after = 0;
}

static void finish_groups(const Run *run, int from, int to) {
  const Model *m = run->model;
  for (int row = 0; row < run->numRows; row++) {
    float *const out = run->output + row * run->outputStride + from * GROUP;
    if (run->finish == CAPPED) limit(out, (to - from) * GROUP, m->logitCap);
    else activate(out, (to - from) * GROUP, m->isGelu);
  }
}

static void multiply_groups(void *context, int chunk, int thread) {
  (void)thread;
  const Run *run = context;
  const int from = chunk * run->chunkSize, groups = run->linear->groups;
  const int to = from + run->chunkSize < groups ? from + run->chunkSize : groups;
  product(run->linear, from, to, &run->codes, run->numRows, run->output, run->outputStride, run->adds);
  if (run->finish != AS_IS) finish_groups(run, from, to);
}

/** output (+)= the coded rows times the layer. */
static void multiply(Run *run, const Linear *linear, float *output, size_t stride, int adds) {
  run->linear = linear;
  run->output = output;
  run->outputStride = stride;
  run->adds = adds;
  each(run, linear->groups, groups_per_chunk(run, linear->groups), multiply_groups);
  run->finish = AS_IS;
}

/** Adds the coded rows times the layer to the hidden rows; with a norm `after`, when these are coded next. */
static void add(Run *run, const Linear *linear, const Norm *after) {
  run->after = after->weight ? after : 0;
  multiply(run, linear, run->after ? run->branch : run->hidden, run->hiddenStride, !run->after);
}

static void gate_groups(void *context, int chunk, int thread) {
  (void)thread;
  const Run *run = context;
  const Layer *layer = run->model->layers + run->l;
  const int from = chunk * run->chunkSize, groups = layer->gate.groups;
  const int to = from + run->chunkSize < groups ? from + run->chunkSize : groups;
  gated_product(&layer->gate, &layer->up, run->model->isGelu, from, to, &run->codes, run->numRows, run->act, run->actStride);
}

static void feed_forward(Run *run, const Layer *layer) {
  if (layer->gate.weights) {
    each(run, layer->gate.groups, groups_per_chunk(run, layer->gate.groups), gate_groups);
    return;
  }
  run->finish = ACTIVATED;
  multiply(run, &layer->up, run->act, run->actStride, 0);
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
  code_part(row, wide, codes, 4, scale, &sum);
  for (int i = 0; i < size; i++) out[i * step] = codes[i];
}

/** Norms and rotates queries and keys, codes the queries, and writes the new rows into the pool. */
static void write_rows(void *context, int chunk, int thread) {
  (void)thread;
  const Run *run = context;
  const Model *m = run->model;
  const Layer *layer = m->layers + run->l;
  const PoolLayer *pool = run->pool->layers + run->l;
  const int D = m->headSize, L = run->pool->pageSlots, G = m->heads / m->kvHeads, half = D / 2;
  const size_t angles = layer->rope == LOCAL_ROPE ? (size_t)run->step->numRows * half : 0;
  FOR_CHUNK(row, run->numRows) {
    float *x = run->qkv + row * run->qkvStride;
    if (layer->qNorm) normalise_part(x, layer->qNorm, m->heads * D, m->epsilon);
    if (layer->kNorm) normalise_part(x + m->heads * D, layer->kNorm, m->kvHeads * D, m->epsilon);
    for (int h = 0; h < m->heads + m->kvHeads; h++) {
      const size_t at = angles + (size_t)row * half;
      if (layer->qkNorm) normalise_part(x + h * D, layer->qkNorm + h * D, D, m->epsilon);
      if (layer->rope != NO_ROPE) rotate(x + h * D, D, run->step->cos + at, run->step->sin + at);
    }
    for (int h = 0; h < m->heads; h++)
      code_query(m, layer, &run->queries, ((size_t)(h / G) * run->numRows + row) * G + h % G, h / G, x + h * D);
    const int place = run->step->slots[row] / L, slot = run->step->slots[row] % L;
    for (int h = 0; h < m->kvHeads; h++) {
      const size_t at = (size_t)place * m->kvHeads + h;
      const float *key = x + (m->heads + h) * D, *value = key + m->kvHeads * D;
      code_head(key, D, pool->keys + at * D * L + slot, L, pool->keyScales + at * L + slot);
      code_head(value, D, pool->values + (at * L + slot) * D, 1, pool->valueScales + at * L + slot);
    }
  }
}
