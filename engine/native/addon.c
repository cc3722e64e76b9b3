/*
 * The border to JavaScript: checks every size and index before memory is touched. All arithmetic is in step.c.
 */
#include "host.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "file.h"
#include "step.h"

/** Numbers of the shape, in the order of nativeRunner.ts. */
enum { NUM_LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_SIZE, FFN, VOCAB, ATTENTION_BITS, FFN_BITS, HEAD_BITS, SHAPE_SIZE };
/** Tensors of a layer and of the model, in the order of nativeRunner.ts. */
enum { NORM1, QKV, QKV_SCALES, QKV_BIAS, KEY_BIAS, QK_NORM, O, O_SCALES, O_BIAS, NORM2, GATE, GATE_SCALES, GATE_BIAS,
       UP, UP_SCALES, UP_BIAS, DOWN, DOWN_SCALES, DOWN_BIAS, LAYER_TENSORS };
enum { EMBEDDING, EMBEDDING_SCALES, NORM, HEAD, HEAD_SCALES, MODEL_TENSORS };
enum { MAX_SIZE = 1 << 24, MAX_LAYERS = 4096 };

typedef struct {
  Model model;
  Pool pool;
  MappedFile file;
  Memory weights;
  float *keyBiases;
  Threads *threads;
  Workspace *space;
  const Kernels *kernels;
  /** Keeps the arrays of the pool alive. */
  napi_ref bound;
  /** Whether a step runs. */
  int isBusy;
  int isClosed;
} Engine;

static napi_value fail(napi_env env, const char *message) {
  napi_throw_error(env, 0, message);
  return 0;
}

static napi_value undefined(napi_env env) {
  napi_value value;
  napi_get_undefined(env, &value);
  return value;
}

typedef struct {
  void *data;
  size_t length;
} Array;

/** Returns 0 unless `value` is a typed array of the type. */
static int array_of(napi_env env, napi_value value, napi_typedarray_type type, Array *array) {
  napi_typedarray_type actual;
  napi_value buffer;
  size_t offset;
  bool is = false;
  return napi_is_typedarray(env, value, &is) == napi_ok && is &&
         napi_get_typedarray_info(env, value, &actual, &array->length, &array->data, &buffer, &offset) == napi_ok &&
         actual == type;
}

static int element(napi_env env, napi_value list, uint32_t index, napi_value *value) {
  return napi_get_element(env, list, index, value) == napi_ok;
}

static int array_at(napi_env env, napi_value list, uint32_t index, napi_typedarray_type type, Array *array) {
  napi_value value;
  return element(env, list, index, &value) && array_of(env, value, type, array);
}

static void release(Engine *engine) {
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

static void finalize(napi_env env, void *data, void *hint) {
  (void)hint;
  if (((Engine *)data)->bound) napi_delete_reference(env, ((Engine *)data)->bound);
  release(data);
  free(data);
}

/** The engine of the first argument. Null with an error if there is none. */
static Engine *engine_of(napi_env env, napi_value value) {
  void *data = 0;
  napi_valuetype type;
  if (napi_typeof(env, value, &type) != napi_ok || type != napi_external ||
      napi_get_value_external(env, value, &data) != napi_ok || !data || ((Engine *)data)->isClosed)
    return fail(env, "This is no open engine."), NULL;
  return data;
}

static int pad(int n, int to) { return (n + to - 1) / to * to; }

typedef struct {
  const MappedFile *file;
  const double *places;
  int isBad;
} Tensors;

/** Tensor i with at least `size` bytes, or null if it is left out. */
static const void *tensor(Tensors *t, size_t i, double size, int isOptional) {
  const double offset = t->places[2 * i], length = t->places[2 * i + 1];
  if (offset < 0 && isOptional) return 0;
  // Vectors are read in whole groups, so the file must go on to the next 64 bytes.
  const size_t end = ((size_t)(offset < 0 ? 0 : offset + length) + 63) / 64 * 64;
  if (!(offset >= 0 && length >= size && end <= t->file->size) || (size_t)offset % 64 != 0) {
    t->isBad = 1;
    return 0;
  }
  return t->file->data + (size_t)offset;
}

static Linear linear(Tensors *t, size_t first, int bits, int rows, int width, int hasBias, size_t bias) {
  Linear m = {.bits = bits, .groups = pad(rows, GROUP) / GROUP, .width = pad(width, bits == 8 ? 16 : BLOCK4)};
  const double outputs = (double)m.groups * GROUP;
  m.weights = tensor(t, first, outputs * m.width * bits / 8, 0);
  m.scales = tensor(t, first + 1, 4 * outputs * (bits == 8 ? 1 : m.width / BLOCK4), 0);
  if (hasBias) m.bias = tensor(t, bias, 4.0 * rows, 1);
  return m;
}

static int read_layers(Engine *engine, Tensors *t, const int32_t *shape) {
  Model *m = &engine->model;
  const int queries = m->heads * m->headSize, keys = m->kvHeads * m->headSize;
  for (int l = 0; l < m->numLayers; l++) {
    Layer *layer = m->layers + l;
    const size_t at = (size_t)l * LAYER_TENSORS;
    layer->norm1 = tensor(t, at + NORM1, 4.0 * m->hidden, 0);
    layer->norm2 = tensor(t, at + NORM2, 4.0 * m->hidden, 0);
    layer->qkNorm = tensor(t, at + QK_NORM, 4.0 * (queries + keys), 1);
    layer->qkv = linear(t, at + QKV, shape[ATTENTION_BITS], queries + 2 * keys, m->hidden, 1, at + QKV_BIAS);
    layer->o = linear(t, at + O, shape[ATTENTION_BITS], m->hidden, queries, 1, at + O_BIAS);
    layer->gate = linear(t, at + GATE, shape[FFN_BITS], m->ffn, m->hidden, 1, at + GATE_BIAS);
    layer->up = linear(t, at + UP, shape[FFN_BITS], m->ffn, m->hidden, 1, at + UP_BIAS);
    layer->down = linear(t, at + DOWN, shape[FFN_BITS], m->hidden, m->ffn, 1, at + DOWN_BIAS);
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

static int is_shape(const int32_t *s) {
  for (int i = 0; i < ATTENTION_BITS; i++)
    if (s[i] < 1 || s[i] > MAX_SIZE) return 0;
  for (int i = ATTENTION_BITS; i < SHAPE_SIZE; i++)
    if (s[i] != 8 && s[i] != 4) return 0;
  return s[NUM_LAYERS] <= MAX_LAYERS && s[HEADS] <= 1024 && s[HEADS] % s[KV_HEADS] == 0 && s[HEAD_SIZE] <= 1024 &&
         s[HEAD_SIZE] % 4 == 0;
}

/**
 * Copies the weights of the layers into one block of memory with large pages, where the system has them. A token takes
 * 0.92 of the time then, because fewer addresses must be translated. Elsewhere weights are read from the mapped file.
 */
static void gather_weights(Engine *engine) {
  Model *m = &engine->model;
  const int count = 5 * m->numLayers + 1;
  size_t size = 0;
  for (int pass = 0; pass < 2; pass++) {
    size_t at = 0;
    for (int i = 0; i < count; i++) {
      Layer *layer = m->layers + i / 5;
      Linear *const all[] = {&layer->qkv, &layer->o, &layer->gate, &layer->up, &layer->down};
      Linear *linear = i == count - 1 ? &m->head : all[i % 5];
      const size_t bytes = (size_t)linear->groups * GROUP * linear->width * linear->bits / 8;
      if (pass == 1) {
        memcpy(engine->weights.data + at, linear->weights, bytes);
        linear->weights = (int8_t *)engine->weights.data + at;
      }
      at += (bytes + 63) / 64 * 64;
    }
    size = at;
    if (pass == 0 && !memory_open(size, &engine->weights)) return;
  }
  file_forget(&engine->file);
}

static const char *open_model(Engine *engine, const int32_t *shape, double epsilon, const Array *places, int threads) {
  Model *m = &engine->model;
  if (places->length != 2 * ((size_t)shape[NUM_LAYERS] * LAYER_TENSORS + MODEL_TENSORS))
    return "The list of tensors has another length than the shape needs.";
  *m = (Model){.numLayers = shape[NUM_LAYERS], .hidden = shape[HIDDEN], .heads = shape[HEADS],
               .kvHeads = shape[KV_HEADS], .headSize = shape[HEAD_SIZE], .ffn = shape[FFN], .vocab = shape[VOCAB],
               .epsilon = (float)epsilon};
  m->layers = calloc(m->numLayers, sizeof *m->layers);
  engine->keyBiases = calloc((size_t)m->numLayers * m->kvHeads * m->headSize, 4);
  engine->pool.layers = calloc(m->numLayers, sizeof *engine->pool.layers);
  engine->threads = threads_open(threads);
  engine->space = engine->threads ? workspace_open(threads_count(engine->threads)) : 0;
  if (!m->layers || !engine->keyBiases || !engine->pool.layers || !engine->space)
    return "There is not enough memory for the model.";
  Tensors t = {&engine->file, places->data, 0};
  const size_t at = (size_t)m->numLayers * LAYER_TENSORS;
  m->embedding = tensor(&t, at + EMBEDDING, 2.0 * m->vocab * m->hidden, 0);
  m->embeddingScales = tensor(&t, at + EMBEDDING_SCALES, 4.0 * m->vocab, 0);
  m->norm = tensor(&t, at + NORM, 4.0 * m->hidden, 0);
  m->head = linear(&t, at + HEAD, shape[HEAD_BITS], m->vocab, m->hidden, 0, 0);
  if (!read_layers(engine, &t, shape)) return "A tensor is not in the weight file or is too short.";
  gather_weights(engine);
  return 0;
}

static PathUnit *path_of(napi_env env, napi_value value) {
  size_t length;
#ifdef _WIN32
  if (napi_get_value_string_utf16(env, value, 0, 0, &length) != napi_ok) return 0;
  PathUnit *path = malloc((length + 1) * sizeof *path);
  if (path) napi_get_value_string_utf16(env, value, (char16_t *)path, length + 1, &length);
#else
  if (napi_get_value_string_utf8(env, value, 0, 0, &length) != napi_ok) return 0;
  PathUnit *path = malloc(length + 1);
  if (path) napi_get_value_string_utf8(env, value, path, length + 1, &length);
#endif
  return path;
}

/** open(path, kernels, shape: Int32Array, epsilon, tensors: Float64Array, threads) */
static napi_value open_engine(napi_env env, napi_callback_info info) {
  size_t count = 6;
  napi_value args[6], result;
  char name[32];
  size_t length;
  Array shape, places;
  double epsilon;
  int32_t threads;
  if (napi_get_cb_info(env, info, &count, args, 0, 0) != napi_ok || count < 6 ||
      napi_get_value_string_utf8(env, args[1], name, sizeof name, &length) != napi_ok ||
      !array_of(env, args[2], napi_int32_array, &shape) || shape.length != SHAPE_SIZE || !is_shape(shape.data) ||
      napi_get_value_double(env, args[3], &epsilon) != napi_ok ||
      !array_of(env, args[4], napi_float64_array, &places) || napi_get_value_int32(env, args[5], &threads) != napi_ok)
    return fail(env, "The shape of the model is not supported.");
  Engine *engine = calloc(1, sizeof *engine);
  PathUnit *path = path_of(env, args[0]);
  const char *problem = 0;
  if (!engine || !path) problem = "There is not enough memory for the model.";
  else if (!(engine->kernels = kernels_named(name))) problem = "This processor cannot run these kernels.";
  else if (!file_map(path, &engine->file)) problem = "The weight file cannot be mapped into memory.";
  else problem = open_model(engine, shape.data, epsilon, &places, threads);
  free(path);
  if (problem || napi_create_external(env, engine, finalize, 0, &result) != napi_ok) {
    if (engine) release(engine);
    free(engine);
    return fail(env, problem ? problem : "The engine cannot be created.");
  }
  return result;
}

static napi_value close_engine(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value arg;
  if (napi_get_cb_info(env, info, &count, &arg, 0, 0) != napi_ok || count < 1) return 0;
  Engine *engine = engine_of(env, arg);
  if (!engine) return 0;
  if (engine->isBusy) return fail(env, "A step runs.");
  if (engine->bound) napi_delete_reference(env, engine->bound);
  engine->bound = 0;
  release(engine);
  return undefined(env);
}

/**
 * bind(engine, pageSlots, arrays): the arrays of the pool. `arrays` has keys, values, key scales and value scales of
 * each layer, and then the rotations if a layer has a key bias.
 */
static napi_value bind_pool(napi_env env, napi_callback_info info) {
  size_t count = 3;
  napi_value args[3];
  int32_t L;
  if (napi_get_cb_info(env, info, &count, args, 0, 0) != napi_ok || count < 3)
    return fail(env, "bind takes 3 arguments.");
  Engine *engine = engine_of(env, args[0]);
  if (!engine) return 0;
  if (engine->isBusy) return fail(env, "A step runs.");
  const Model *m = &engine->model;
  if (napi_get_value_int32(env, args[1], &L) != napi_ok || L < 1 || L > MAX_SIZE) return fail(env, "Bad page size.");
  const size_t row = (size_t)m->kvHeads * L;
  size_t places = 0;
  int hasBias = 0;
  engine->pool.numPlaces = 0;
  for (int l = 0; l < m->numLayers; l++) {
    Array a[4];
    for (int i = 0; i < 4; i++)
      if (!array_at(env, args[2], 4 * l + i, i < 2 ? napi_int8_array : napi_float32_array, a + i))
        return fail(env, "The pool must have four arrays a layer.");
    if (l == 0) places = a[2].length / row;
    if (a[0].length != places * row * m->headSize || a[1].length != a[0].length || a[2].length != places * row ||
        a[3].length != places * row || places * L > INT32_MAX)
      return fail(env, "The arrays of the pool have different sizes.");
    engine->pool.layers[l] = (PoolLayer){a[0].data, a[1].data, a[2].data, a[3].data};
    hasBias |= m->layers[l].keyBias != 0;
  }
  Array rotations = {0, 0};
  if (hasBias && (!array_at(env, args[2], 4 * m->numLayers, napi_float32_array, &rotations) ||
                  rotations.length != places * m->headSize * L))
    return fail(env, "The rotations of the pool have another size.");
  engine->pool.rotations = rotations.data;
  engine->pool.pageSlots = L;
  if (engine->bound) napi_delete_reference(env, engine->bound);
  engine->bound = 0;
  if (napi_create_reference(env, args[2], 1, &engine->bound) != napi_ok) return fail(env, "The pool cannot be held.");
  engine->pool.numPlaces = (int)places;
  return undefined(env);
}

typedef struct {
  napi_async_work work;
  napi_deferred deferred;
  /** Keep the engine and the arguments alive. */
  napi_ref handle, arguments;
  Engine *engine;
  Step step;
  Span *spans;
  Block *blocks;
  /** Of each row of the only span, its block and slot in it; [numContext + numRows], or null. */
  int32_t *columns;
  int numColumns;
  float *columnsReceived, *received;
  int failed;
} Work;

/** Arguments of a step, in the order of addon.ts. */
enum { IDS, COS, SIN, SPANS, CONTEXT_SLOTS, NEW_SLOTS, PLACES, LOGIT_ROWS, QUERY_ROWS, LOGITS, QUERIES, RECEIVED,
       NUM_ARGUMENTS };

static void free_work(Work *work) {
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

/** Checks the arguments and prepares the step. Returns a problem, or null. */
static const char *plan_step(Work *work, const Array *a) {
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

static void execute(napi_env env, void *data) {
  (void)env;
  Work *work = data;
  Engine *engine = work->engine;
  work->failed = engine->kernels->run(&engine->model, &engine->pool, &work->step, engine->threads, engine->space);
  if (work->failed || !work->columns) return;
  const size_t heads = 2 * (size_t)engine->model.numLayers * engine->model.kvHeads;
  const size_t slots = 64 * (size_t)work->spans[0].numBlocks;
  for (size_t h = 0; h < heads; h++)
    for (int i = 0; i < work->numColumns; i++)
      work->received[h * work->numColumns + i] = work->columnsReceived[h * slots + work->columns[i]];
}

static void complete(napi_env env, napi_status status, void *data) {
  Work *work = data;
  work->engine->isBusy = 0;
  napi_delete_async_work(env, work->work);
  napi_delete_reference(env, work->arguments);
  napi_delete_reference(env, work->handle);
  if (status == napi_ok && !work->failed) napi_resolve_deferred(env, work->deferred, undefined(env));
  else {
    napi_value message, error;
    napi_create_string_utf8(env, "There is not enough memory for a step.", NAPI_AUTO_LENGTH, &message);
    napi_create_error(env, 0, message, &error);
    napi_reject_deferred(env, work->deferred, error);
  }
  free_work(work);
}

/** step(engine, arguments): returns a promise. */
static napi_value run_step(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value args[2], promise, name;
  if (napi_get_cb_info(env, info, &count, args, 0, 0) != napi_ok || count < 2)
    return fail(env, "step takes 2 arguments.");
  Engine *engine = engine_of(env, args[0]);
  if (!engine) return 0;
  if (engine->isBusy) return fail(env, "A step runs.");
  if (engine->pool.numPlaces < 1) return fail(env, "There is no pool.");
  Array a[NUM_ARGUMENTS];
  for (int i = 0; i < NUM_ARGUMENTS; i++) {
    const int isFloat = i == COS || i == SIN || i == LOGITS || i == QUERIES || i == RECEIVED;
    if (!array_at(env, args[1], i, isFloat ? napi_float32_array : napi_int32_array, a + i))
      return fail(env, "An array of a step has another type.");
  }
  Work *work = calloc(1, sizeof *work);
  if (!work) return fail(env, "There is not enough memory for a step.");
  work->engine = engine;
  const char *problem = plan_step(work, a);
  if (!problem && (napi_create_reference(env, args[1], 1, &work->arguments) != napi_ok ||
                   napi_create_reference(env, args[0], 1, &work->handle) != napi_ok ||
                   napi_create_string_utf8(env, "kvasir step", NAPI_AUTO_LENGTH, &name) != napi_ok ||
                   napi_create_promise(env, &work->deferred, &promise) != napi_ok ||
                   napi_create_async_work(env, 0, name, execute, complete, work, &work->work) != napi_ok))
    problem = "The step cannot be started.";
  if (problem) {
    free_work(work);
    return fail(env, problem);
  }
  engine->isBusy = 1;
  if (napi_queue_async_work(env, work->work) != napi_ok) {
    engine->isBusy = 0;
    free_work(work);
    return fail(env, "The step cannot be started.");
  }
  return promise;
}

/** kernels(): the names of those that this processor can run, the best first. */
static napi_value list_kernels(napi_env env, napi_callback_info info) {
  (void)info;
  static const char *const names[] = {"avx512vnni", "avxvnni", "avx2", "dotprod", "plain"};
  napi_value list, name;
  uint32_t count = 0;
  if (napi_create_array(env, &list) != napi_ok) return 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (kernels_named(names[i]) && napi_create_string_utf8(env, names[i], NAPI_AUTO_LENGTH, &name) == napi_ok)
      napi_set_element(env, list, count++, name);
  return list;
}

static napi_value init(napi_env env, napi_value exports) {
  static const struct {
    const char *name;
    napi_callback function;
  } functions[] = {{"kernels", list_kernels}, {"open", open_engine}, {"close", close_engine}, {"bind", bind_pool},
                   {"step", run_step}};
  if (!bind_host()) return exports;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    napi_value value;
    if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].function, 0, &value) == napi_ok)
      napi_set_named_property(env, exports, functions[i].name, value);
  }
  return exports;
}

NAPI_MODULE_INIT() { return init(env, exports); }
