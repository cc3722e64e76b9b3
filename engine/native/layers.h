/* Everything of a layer except attention: norms, codes, products and the new rows of the pool. Included by step.c. */
#pragma once
#include "run.h"

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
  Run *run = context;
  float *const normed = run->normed + thread * run->hiddenStride;
  FOR_CHUNK(row, run->numRows) {
    const float *x = run->input + row * run->inputStride;
    if (run->norm) {
      rms_norm(x, run->norm, (int)run->hiddenStride, run->inputSize, run->model->epsilon, normed);
      x = normed;
    }
    code_row(run->linear, x, run->inputSize, &run->codes, row);
  }
}

/** Codes `size` numbers a row, divided by their root mean square if there is a norm (hidden rows), for the layer. */
static void code(Run *run, const Linear *linear, const float *input, size_t stride, int size, const float *norm) {
  run->linear = linear;
  run->input = input;
  run->inputStride = stride;
  run->inputSize = size;
  run->norm = norm;
  run->codes.stride = padded(linear->width, 64);
  run->codes.together = run->numRows < LANES_OF_ROWS ? 1 : LANES_OF_ROWS;
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
  const int D = m->headSize, L = run->pool->pageSlots, wide = padded(D, 16), G = m->heads / m->kvHeads;
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
