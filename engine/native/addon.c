/* The functions of the addon, and steps in the background. All arithmetic is in step.c. */
#include "plan.h"
#include <stdlib.h>

static void drop(napi_env env, napi_ref *reference) {
  if (*reference) napi_delete_reference(env, *reference);
  *reference = 0;
}

/** Closes the engine, but its handle still knows it. */
static void close_all(napi_env env, Engine *engine) {
  engine_release(engine);
  drop(env, &engine->bound);
  drop(env, &engine->array);
}

static void finalize(napi_env env, void *data, void *hint) {
  (void)hint;
  close_all(env, data);
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

/** Takes the weights from a Uint8Array, or maps the file that is named. Returns a problem, or null. */
static const char *take_weights(napi_env env, napi_value from, Engine *engine) {
  Array array;
  if (array_of(env, from, napi_uint8_array, &array)) {
    if (napi_create_reference(env, from, 1, &engine->array) != napi_ok) return "The weights cannot be held.";
    engine->bytes = array.data;
    engine->size = array.length;
    return 0;
  }
  PathUnit *path = path_of(env, from);
  const int isMapped = path && file_map(path, &engine->file);
  free(path);
  if (!isMapped) return "The weight file cannot be mapped into memory.";
  engine->bytes = engine->file.data;
  engine->size = engine->file.size;
  return 0;
}

/** open(weights: path or Uint8Array, kernels, shape: Int32Array, factors: Float64Array, tensors: Float64Array, threads) */
static napi_value open_engine(napi_env env, napi_callback_info info) {
  size_t count = 6;
  napi_value args[6], result;
  char name[32];
  size_t length;
  Array shape, factors, places;
  int32_t threads;
  if (napi_get_cb_info(env, info, &count, args, 0, 0) != napi_ok || count < 6 ||
      napi_get_value_string_utf8(env, args[1], name, sizeof name, &length) != napi_ok ||
      !array_of(env, args[2], napi_int32_array, &shape) || !is_shape(shape.data, shape.length) ||
      !array_of(env, args[3], napi_float64_array, &factors) || !are_factors(factors.data, factors.length) ||
      !array_of(env, args[4], napi_float64_array, &places) || napi_get_value_int32(env, args[5], &threads) != napi_ok)
    return fail(env, "The shape of the model is not supported.");
  Engine *engine = calloc(1, sizeof *engine);
  if (!engine) return fail(env, "There is not enough memory for the model.");
  const char *problem = "This processor cannot run these kernels.";
  if ((engine->kernels = kernels_named(name))) problem = take_weights(env, args[0], engine);
  if (!problem) problem = engine_open(engine, shape.data, factors.data, places.data, places.length, threads);
  if (problem || napi_create_external(env, engine, finalize, 0, &result) != napi_ok) {
    close_all(env, engine);
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
  close_all(env, engine);
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
  drop(env, &engine->bound);
  if (napi_create_reference(env, args[2], 1, &engine->bound) != napi_ok) return fail(env, "The pool cannot be held.");
  engine->pool.numPlaces = (int)places;
  return undefined(env);
}

static void execute(napi_env env, void *data) {
  (void)env;
  Work *work = data;
  Engine *engine = work->engine;
  work->failed = engine->kernels->run(&engine->model, &engine->pool, &work->step, engine->threads, engine->space);
  if (work->failed || !work->columns) return;
  const size_t heads = 2 * (size_t)engine->model.numLayers * engine->model.kvHeads;
  const size_t slots = 64 * (size_t)work->spans[WHOLE][0].numBlocks;
  for (size_t h = 0; h < heads; h++)
    for (int i = 0; i < work->numColumns; i++)
      work->received[h * work->numColumns + i] = work->columnsReceived[h * slots + work->columns[i]];
}

static void reject(napi_env env, napi_deferred deferred, const char *text) {
  napi_value message, error;
  if (napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &message) == napi_ok &&
      napi_create_error(env, 0, message, &error) == napi_ok)
    napi_reject_deferred(env, deferred, error);
}

/** Gives back what a step holds, also if it was made in part. */
static void end_work(napi_env env, Work *work) {
  if (work->work) napi_delete_async_work(env, work->work);
  drop(env, &work->arguments);
  drop(env, &work->handle);
  free_work(work);
}

static void complete(napi_env env, napi_status status, void *data) {
  Work *work = data;
  work->engine->isBusy = 0;
  if (status == napi_ok && !work->failed) napi_resolve_deferred(env, work->deferred, undefined(env));
  else reject(env, work->deferred, "There is not enough memory for a step.");
  end_work(env, work);
}

static const char NOT_STARTED[] = "The step cannot be started.";

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
                   napi_create_async_work(env, 0, name, execute, complete, work, &work->work) != napi_ok ||
                   napi_create_promise(env, &work->deferred, &promise) != napi_ok))
    problem = NOT_STARTED;
  if (problem) {
    end_work(env, work);
    return fail(env, problem);
  }
  engine->isBusy = 1;
  if (napi_queue_async_work(env, work->work) != napi_ok) {
    engine->isBusy = 0;
    reject(env, work->deferred, NOT_STARTED);
    end_work(env, work);
  }
  return promise;
}

/** threads(engine): how many threads compute, this one included. */
static napi_value count_threads(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value arg, value;
  if (napi_get_cb_info(env, info, &count, &arg, 0, 0) != napi_ok || count < 1) return 0;
  const Engine *engine = engine_of(env, arg);
  if (!engine || napi_create_int32(env, threads_count(engine->threads), &value) != napi_ok) return 0;
  return value;
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
                   {"step", run_step}, {"threads", count_threads}};
  if (!bind_host()) return exports;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    napi_value value;
    if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].function, 0, &value) == napi_ok)
      napi_set_named_property(env, exports, functions[i].name, value);
  }
  return exports;
}

NAPI_MODULE_INIT() { return init(env, exports); }
