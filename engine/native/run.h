/* State of a step, and its chunks for the threads. Included by step.c. */
#pragma once
#include "attention.h"
#include "products.h"

enum { BUFFER_HIDDEN, BUFFER_QKV, BUFFER_MIXED, BUFFER_ACT, BUFFER_CODES, BUFFER_SCALES, BUFFER_SUMS, BUFFER_QUERIES,
       BUFFER_ITEMS, BUFFER_PARTS, BUFFER_NORMED, BUFFER_BRANCH, BUFFER_THREAD };

/** The attention of all rows in a view, or of those with logits in the last layer. */
typedef struct {
  Item *items;
  int numItems;
  /** Parts of an item. With one, a thread computes an item at once. */
  int numParts;
} Plan;

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
  /** What attention and feed-forward layers with a norm behind them add to `hidden`, or null. */
  float *branch;
  /** [threads][hiddenStride]. */
  float *normed;
  size_t hiddenStride, qkvStride, mixedStride, actStride;
  Codes codes;
  Queries queries;
  Plan plans[NUM_VIEWS], lastPlan;
  /** Of the running layer. */
  const Plan *plan;
  AttendMemory *memory;
  /** [numItems][numParts], and the scores of all items, if there are several parts. */
  Part *parts;
  float *scores;
  /** Of the running phase. */
  const Linear *linear;
  const float *input;
  /** Of the input. Null: none. `after`: of the branch that is added to the input before. */
  const Norm *norm, *after;
  size_t inputStride;
  int inputSize, chunkSize;
  float *output;
  size_t outputStride;
  int adds;
  /** Of the output. */
  enum { AS_IS, ACTIVATED, CAPPED } finish;
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
