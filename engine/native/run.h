/* State of a step, and its chunks for the threads. Included by step.c. */
#pragma once
#include "attention.h"
#include "products.h"

enum { BUFFER_HIDDEN, BUFFER_QKV, BUFFER_MIXED, BUFFER_ACT, BUFFER_CODES, BUFFER_SCALES, BUFFER_SUMS, BUFFER_QUERIES,
       BUFFER_ITEMS, BUFFER_PARTS, BUFFER_NORMED, BUFFER_BRANCH, BUFFER_EXPERTS, BUFFER_OUTPUTS, BUFFER_THREAD };

/** The attention of all rows in a view, or of those with logits in the last layer. */
typedef struct {
  Item *items;
  int numItems;
  /** Parts of an item. With one, a thread computes an item at once. */
  int numParts;
} Plan;

/** An expert that some rows have chosen, and its slots. */
typedef struct {
  int expert, firstSlot, numRows;
} Active;

/** A row of an expert. Row -1: none. `active`: its number. */
typedef struct {
  int row, active;
} Slot;

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
  /** Of layers with experts. `kept`: the normed rows, or null if they are not kept now. */
  float *kept, *keptRows;
  /** [2 * numRows][routedStride]: see choose. [numRows][sharesStride]. */
  float *routed, *shares;
  size_t routedStride, sharesStride;
  /** [numRows][numUsed]: numbers of experts, and slots. */
  int32_t *chosen, *slotOf;
  /** [numExperts]. */
  int32_t *expertSlots;
  Active *active;
  Slot *slots;
  int numActive, numSlots;
  /** [slots][hiddenStride]: what the experts give. */
  float *outputs;
  /** Whether the input of a slot is its own, not that of its row. */
  int takesSlots;
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
