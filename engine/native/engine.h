/* An open model: its weights, threads, buffers and the arrays of its pool. */
#pragma once
#include <node_api.h>
#include "file.h"
#include "step.h"

/**
 * Numbers of the shape, in the order of nativeRunner.ts: those of experts are 0 if there are none. Behind them comes the
 * kind of each layer: its rope, and HAS_WINDOW.
 */
enum { NUM_LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_SIZE, FFN, VOCAB, ATTENTION_BITS, FFN_BITS, HEAD_BITS, IS_GELU, WINDOW,
       EXPERTS, USED, EXPERT_SIZE, IS_NORMED, SHAPE_SIZE };
enum { HAS_WINDOW = 4 };
/** Numbers that are not whole. Caps: 0 for none. */
enum { EPSILON, SCORE_CAP, LOGIT_CAP, FACTORS_SIZE };
enum { MAX_SIZE = 1 << 24 };

typedef struct {
  Model model;
  Pool pool;
  /** Empty if the weights are an array. */
  MappedFile file;
  const char *bytes;
  size_t size;
  Memory weights;
  float *keyBiases;
  Threads *threads;
  Workspace *space;
  const Kernels *kernels;
  /** Keep alive the arrays of the pool, and the weights if they are an array instead of a file. */
  napi_ref bound, array;
  /** Whether a step runs. */
  int isBusy;
  int isClosed;
} Engine;

/** Whether all `length` numbers are supported. */
int is_shape(const int32_t *shape, size_t length);
int are_factors(const double *factors, size_t length);
/**
 * Opens the model in `size` bytes, of the file or of an array. `places` [numPlaces]: offset and length of each tensor;
 * a negative offset for one that the model does not have. Returns a problem, or null. Call engine_release in any case.
 */
const char *engine_open(Engine *, const int32_t *shape, const double *factors, const double *places,
                        size_t numPlaces, int threads);
void engine_release(Engine *);
