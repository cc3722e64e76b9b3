/* The arguments of a step, checked and put into the form of step.h. */
#pragma once
#include "engine.h"
#include "values.h"

/** Arguments of a step, in the order of addon.ts. */
enum { IDS, COS, SIN, SPANS, CONTEXT_SLOTS, NEW_SLOTS, POSITIONS, PLACES, LOGIT_ROWS, QUERY_ROWS, LOGITS, QUERIES, RECEIVED,
       NUM_ARGUMENTS };

typedef struct {
  napi_async_work work;
  napi_deferred deferred;
  /** Keep the engine and the arguments alive. */
  napi_ref handle, arguments;
  Engine *engine;
  Step step;
  /** By view. `untils`: of the blocks of NEAR, [blocks][64]. */
  Span *spans[NUM_VIEWS];
  Block *blocks[NUM_VIEWS];
  int32_t *untils;
  /** Of each row of the only span, its block and slot in it; [numContext + numRows], or null. */
  int32_t *columns;
  int numColumns;
  float *columnsReceived, *received;
  int failed;
} Work;

/** Checks the arguments [NUM_ARGUMENTS] and prepares the step. Returns a problem, or null. */
const char *plan_step(Work *, const Array *arguments);
void free_work(Work *);
