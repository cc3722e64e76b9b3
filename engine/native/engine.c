/* See engine.h. Checks that every tensor is in the file or array. */
#include "engine.h"
#include <stdlib.h>
#include <string.h>

/** Tensors of a layer and of the model, in the order of nativeRunner.ts. */
enum { NORM1, NORM1_BIAS, QKV, QKV_SCALES, QKV_BIAS, KEY_BIAS, QK_NORM, Q_NORM, K_NORM, O, O_SCALES, O_BIAS,
       NORM1_AFTER, NORM2, NORM2_BIAS, ROUTER, ROUTER_SCALES, GATE, GATE_SCALES, GATE_BIAS, UP, UP_SCALES, UP_BIAS, DOWN, DOWN_SCALES,
       DOWN_BIAS, NORM2_AFTER, LAYER_TENSORS };
enum { EMBEDDING, EMBEDDING_SCALES, NORM, NORM_BIAS, HEAD, HEAD_SCALES, MODEL_TENSORS };
enum { MAX_LAYERS = 4096, MAX_EXPERTS = 4096 };

void engine_release(Engine *engine) {
  if (engine->isClosed) return;
  engine->isClosed = 1;
  threads_close(engine->threads);
  workspace_close(engine->space);
  file_unmap(&engine->file);
  memory_close(&engine->weights);
  free(engine->model.layers);
  free(engine->keyBiases);
  free(engine->pool.layers);
}

static int pad(int n, int to) { return (n + to - 1) / to * to; }

typedef struct {
  const char *bytes;
  size_t size;
  const double *places;
  int isBad;
} Tensors;

/** Tensor i with at least `size` bytes, or null if it is left out. */
static const void *tensor(Tensors *t, size_t i, double size, int isOptional) {
  const double offset = t->places[2 * i], length = t->places[2 * i + 1];
  if (offset < 0 && isOptional) return 0;
  // Vectors are read in whole groups, so the file must go on to the next 64 bytes.
  if (!(offset >= 0 && length >= size && offset + length <= (double)t->size) || (size_t)offset % 64 != 0 ||
      ((size_t)(offset + length) + 63) / 64 * 64 > t->size) {
    t->isBad = 1;
    return 0;
  }
  return t->bytes + (size_t)offset;
}

/** The first of `count` layers of the same size. */
static Linear linears(Tensors *t, size_t first, int bits, int rows, int width, int count) {
  Linear m = {.bits = bits, .groups = pad(rows, GROUP) / GROUP, .width = pad(width, bits == 8 ? 16 : BLOCK4)};
  const double outputs = (double)m.groups * GROUP * count;
  m.weights = tensor(t, first, outputs * m.width * bits / 8, 0);
  m.scales = tensor(t, first + 1, 4 * outputs * (bits == 8 ? 1 : m.width / BLOCK4), 0);
  return m;
}

static Linear linear(Tensors *t, size_t first, int bits, int rows, int width, int hasBias, size_t bias) {
  Linear m = linears(t, first, bits, rows, width, 1);
  if (hasBias) m.bias = tensor(t, bias, 4.0 * rows, 1);
  return m;
}

static int exists(const Tensors *t, size_t i) { return t->places[2 * i] >= 0; }

/** The feed-forward part of the layer whose tensors begin at `at`, or its experts. */
static void read_feed_forward(const Model *m, Layer *layer, Tensors *t, size_t at, int bits) {
  if (!exists(t, at + ROUTER)) {
    if (exists(t, at + GATE)) layer->gate = linear(t, at + GATE, bits, m->ffn, m->hidden, 1, at + GATE_BIAS);
    layer->up = linear(t, at + UP, bits, m->ffn, m->hidden, 1, at + UP_BIAS);
    layer->down = linear(t, at + DOWN, bits, m->hidden, m->ffn, 1, at + DOWN_BIAS);
    return;
  }
  t->isBad |= m->numExperts == 0 || exists(t, at + NORM2_AFTER);
  if (t->isBad) return;
  layer->router = linears(t, at + ROUTER, 8, 2 * pad(m->numExperts, GROUP), m->hidden, 1);
  layer->gate = linears(t, at + GATE, bits, m->expertSize, m->hidden, m->numExperts);
  layer->up = linears(t, at + UP, bits, m->expertSize, m->hidden, m->numExperts);
  layer->down = linears(t, at + DOWN, bits, m->hidden, m->expertSize, m->numExperts);
}

/** The norm of hidden rows, or none. */
static Norm norm(Tensors *t, size_t weight, size_t bias, int hidden) {
  return (Norm){tensor(t, weight, 4.0 * hidden, 1), bias ? tensor(t, bias, 4.0 * hidden, 1) : 0};
}

static int read_layers(Engine *engine, Tensors *t, const int32_t *shape) {
  Model *m = &engine->model;
  const int queries = m->heads * m->headSize, keys = m->kvHeads * m->headSize;
  for (int l = 0; l < m->numLayers; l++) {
    Layer *layer = m->layers + l;
    const size_t at = (size_t)l * LAYER_TENSORS;
    const int kind = shape[SHAPE_SIZE + l];
    layer->rope = kind % HAS_WINDOW;
    layer->hasWindow = kind >= HAS_WINDOW;
    m->hasLocalRope |= layer->rope == LOCAL_ROPE;
    layer->norm1 = norm(t, at + NORM1, at + NORM1_BIAS, m->hidden);
    layer->norm2 = norm(t, at + NORM2, at + NORM2_BIAS, m->hidden);
    layer->norm1After = norm(t, at + NORM1_AFTER, 0, m->hidden);
    layer->norm2After = norm(t, at + NORM2_AFTER, 0, m->hidden);
    layer->qNorm = tensor(t, at + Q_NORM, 4.0 * queries, 1);
    layer->kNorm = tensor(t, at + K_NORM, 4.0 * keys, 1);
    layer->qkNorm = tensor(t, at + QK_NORM, 4.0 * (queries + keys), 1);
    layer->qkv = linear(t, at + QKV, shape[ATTENTION_BITS], queries + 2 * keys, m->hidden, 1, at + QKV_BIAS);
    layer->o = linear(t, at + O, shape[ATTENTION_BITS], m->hidden, queries, 1, at + O_BIAS);
    read_feed_forward(m, layer, t, at, shape[FFN_BITS]);
    const int D = m->headSize, half = D / 2;
    const float *matrix = tensor(t, at + KEY_BIAS, 4.0 * keys * D, 1);
    if (!matrix || t->isBad) continue;
    // The bias is in the first columns of its matrix (see keyBiasMatrix).
    float *bias = engine->keyBiases + (size_t)l * keys;
    for (int row = 0; row < keys; row++) bias[row] = matrix[(size_t)row * D + row % D % half];
    layer->keyBias = bias;
  }
  return !t->isBad;
}

/** Whether the numbers of experts are supported, all 0 included. */
static int are_experts(const int32_t *s) {
  if (s[EXPERTS] == 0) return s[USED] == 0 && s[EXPERT_SIZE] == 0 && s[IS_NORMED] == 0;
  return s[EXPERTS] > 0 && s[EXPERTS] <= MAX_EXPERTS && s[USED] > 0 && s[USED] <= s[EXPERTS] && s[EXPERT_SIZE] > 0 &&
         s[EXPERT_SIZE] <= MAX_SIZE && s[IS_NORMED] >> 1 == 0;
}

int is_shape(const int32_t *s, size_t length) {
  if (length < SHAPE_SIZE) return 0;
  for (int i = 0; i < ATTENTION_BITS; i++)
    if (s[i] < 1 || s[i] > MAX_SIZE) return 0;
  for (int i = ATTENTION_BITS; i <= HEAD_BITS; i++)
    if (s[i] != 8 && s[i] != 4) return 0;
  if (s[NUM_LAYERS] > MAX_LAYERS || length != SHAPE_SIZE + (size_t)s[NUM_LAYERS] || s[WINDOW] < 0) return 0;
  for (int l = 0; l < s[NUM_LAYERS]; l++) {
    const int kind = s[SHAPE_SIZE + l];
    if (kind < 0 || kind > HAS_WINDOW + LOCAL_ROPE || kind % HAS_WINDOW > LOCAL_ROPE) return 0;
    if (kind >= HAS_WINDOW && s[WINDOW] == 0) return 0;
  }
  return are_experts(s) && s[IS_GELU] >> 1 == 0 && s[HEADS] <= 1024 && s[HEADS] % s[KV_HEADS] == 0 && s[HEAD_SIZE] <= 1024 &&
         s[HEAD_SIZE] % 4 == 0;
}

int are_factors(const double *factors, size_t length) {
  if (length != FACTORS_SIZE) return 0;
  for (int i = 0; i < FACTORS_SIZE; i++)
    if (!(factors[i] >= 0 && factors[i] <= MAX_SIZE)) return 0;
  return 1;
}

/**
 * Copies the weights of the layers into one block of memory with large pages, where the system has them. A token takes
 * 0.92 of the time then, because fewer addresses must be translated. Elsewhere weights are read from the mapped file.
 */
static void gather_weights(Engine *engine) {
  Model *m = &engine->model;
  const int numLinears = 5 * m->numLayers + 1;
  size_t size = 0;
  for (int pass = 0; pass < 2; pass++) {
    size_t at = 0;
    for (int i = 0; i < numLinears; i++) {
      Layer *layer = m->layers + i / 5;
      Linear *const all[] = {&layer->qkv, &layer->o, &layer->gate, &layer->up, &layer->down};
      Linear *linear = i == numLinears - 1 ? &m->head : all[i % 5];
      const int count = i % 5 > 1 && i < numLinears - 1 && layer->router.weights ? m->numExperts : 1;
      const size_t bytes = (size_t)linear->groups * GROUP * linear->width * linear->bits / 8 * count;
      if (pass == 1 && bytes > 0) {
        memcpy(engine->weights.data + at, linear->weights, bytes);
        linear->weights = (int8_t *)engine->weights.data + at;
      }
      at += (bytes + 63) / 64 * 64;
    }
    size = at;
    if (pass == 0 && !memory_open(size, &engine->weights)) return;
  }
  if (engine->file.data) file_forget(&engine->file);
}

const char *engine_open(Engine *engine, const int32_t *shape, const double *factors, const double *places,
                        size_t numPlaces, int threads) {
  Model *m = &engine->model;
  if (numPlaces != 2 * ((size_t)shape[NUM_LAYERS] * LAYER_TENSORS + MODEL_TENSORS))
    return "The list of tensors has another length than the shape needs.";
  *m = (Model){.numLayers = shape[NUM_LAYERS], .hidden = shape[HIDDEN], .heads = shape[HEADS],
               .kvHeads = shape[KV_HEADS], .headSize = shape[HEAD_SIZE], .ffn = shape[FFN], .vocab = shape[VOCAB],
               .numExperts = shape[EXPERTS], .numUsed = shape[USED], .expertSize = shape[EXPERT_SIZE],
               .isNormed = shape[IS_NORMED], .window = shape[WINDOW], .isGelu = shape[IS_GELU], .epsilon = (float)factors[EPSILON],
               .scoreCap = (float)factors[SCORE_CAP], .logitCap = (float)factors[LOGIT_CAP]};
  m->layers = calloc(m->numLayers, sizeof *m->layers);
  engine->keyBiases = calloc((size_t)m->numLayers * m->kvHeads * m->headSize, 4);
  engine->pool.layers = calloc(m->numLayers, sizeof *engine->pool.layers);
  engine->threads = threads_open(threads);
  engine->space = engine->threads ? workspace_open(threads_count(engine->threads)) : 0;
  if (!m->layers || !engine->keyBiases || !engine->pool.layers || !engine->space)
    return "There is not enough memory for the model.";
  Tensors t = {engine->bytes, engine->size, places, 0};
  const size_t at = (size_t)m->numLayers * LAYER_TENSORS;
  m->embedding = tensor(&t, at + EMBEDDING, 2.0 * m->vocab * m->hidden, 0);
  m->embeddingScales = tensor(&t, at + EMBEDDING_SCALES, 4.0 * m->vocab, 0);
  m->norm = norm(&t, at + NORM, at + NORM_BIAS, m->hidden);
  m->head = linear(&t, at + HEAD, shape[HEAD_BITS], m->vocab, m->hidden, 0, 0);
  if (!read_layers(engine, &t, shape)) return "A tensor is not among the weights or is too short.";
  gather_weights(engine);
  return 0;
}
