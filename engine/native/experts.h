/* The layers with experts: the router, and the sum of what the chosen experts compute. Included by step.c. */
#pragma once
#include "layers.h"

/*
 * A slot has one row of one expert: the rows of each expert lie together, so that its weights are read once. A row adds
 * its experts in the order of their numbers, so it has the same bits whatever other rows choose.
 */

static void route_groups(void *context, int chunk, int thread) {
  (void)thread;
  const Run *run = context;
  const int from = chunk * run->chunkSize, groups = run->linear->groups;
  const int to = from + run->chunkSize < groups ? from + run->chunkSize : groups;
  product(run->linear, from, to, &run->codes, 2 * run->numRows, run->routed, run->routedStride, 0);
}

/** e to the power of (x - most), for 16 of `size` numbers, and 0 behind them. */
ALWAYS v16f powers_of(const float *x, int size, float most) {
  const v16i isThere = LANES_16 < size;
  const v16f below = select_f(isThere, (load_f(x) - most) * LOG2_E, splat_f(0));
  return select_f(isThere, power_f(below), splat_f(0));
}

/** The number of the expert with the largest logit of those that are not taken. The first one of equals. */
static int best_expert(const float *logits, const int32_t *isTaken, int count) {
  int best = -1;
  for (int e = 0; e < count; e++)
    if (!isTaken[e] && (best < 0 || logits[e] > logits[best])) best = e;
  return best;
}

/**
 * Chooses the experts of a row, in the order of their numbers, and their shares. The router gave two rows: of the numbers,
 * and of what their codes leave. Each has the products with the codes of the weights, and with those of what they leave.
 */
static void choose(const Run *run, int row) {
  const Model *m = run->model;
  float *const logits = run->routed + (size_t)2 * row * run->routedStride;
  float *const rest = logits + run->routedStride;
  const int low = (int)run->routedStride / 2;
  for (int i = 0; i < low; i += 16) {
    const v16f high = load_f(logits + i) + load_f(rest + i);
    store_f(logits + i, high + (load_f(logits + low + i) + load_f(rest + low + i)));
  }
  // The row of the rest is free now.
  int32_t *const isTaken = (int32_t *)rest;
  memset(isTaken, 0, sizeof(int32_t) * m->numExperts);
  float most = 0;
  for (int i = 0; i < m->numUsed; i++) {
    const int best = best_expert(logits, isTaken, m->numExperts);
    if (i == 0) most = logits[best];
    isTaken[best] = 1;
  }
  int32_t *const chosen = run->chosen + (size_t)row * m->numUsed;
  float *const shares = run->shares + (size_t)row * run->sharesStride;
  for (int e = 0, i = 0; e < m->numExperts; e++)
    if (isTaken[e]) {
      chosen[i] = e;
      shares[i++] = logits[e];
    }
  v16f total = {};
  const float *of = m->isNormed ? shares : logits;
  const int size = m->isNormed ? m->numUsed : m->numExperts;
  for (int i = 0; i < size; i += 16) total += powers_of(of + i, size - i, most);
  const float sum = sum_of_f(total);
  for (int i = 0; i < m->numUsed; i += 16)
    store_f(shares + i, powers_of(shares + i, m->numUsed - i, most) / sum);
}

static void choose_rows(void *context, int chunk, int thread) {
  (void)thread;
  const Run *run = context;
  FOR_CHUNK(row, run->numRows) choose(run, row);
}

/** Gives each expert that is chosen slots for its rows. */
static void place_rows(Run *run) {
  const Model *m = run->model;
  const int numPairs = run->numRows * m->numUsed;
  int32_t *const at = run->expertSlots;
  memset(at, 0, sizeof(int32_t) * m->numExperts);
  for (int i = 0; i < numPairs; i++) at[run->chosen[i]]++;
  run->numActive = run->numSlots = 0;
  for (int e = 0; e < m->numExperts; e++) {
    if (at[e] == 0) continue;
    const int size = at[e] < LANES_OF_ROWS ? at[e] : padded(at[e], LANES_OF_ROWS);
    run->active[run->numActive] = (Active){.expert = e, .firstSlot = run->numSlots, .numRows = at[e]};
    for (int i = 0; i < size; i++) run->slots[run->numSlots + i] = (Slot){.row = -1, .active = run->numActive};
    at[e] = run->numSlots;
    run->numActive++;
    run->numSlots += size;
  }
  for (int i = 0; i < numPairs; i++) {
    const int slot = at[run->chosen[i]]++;
    run->slots[slot].row = i / m->numUsed;
    run->slotOf[i] = slot;
  }
}

/** The codes of the rows of an expert. */
static Codes codes_of(const Run *run, const Active *active) {
  const Codes *all = &run->codes;
  const size_t first = active->firstSlot;
  return (Codes){.codes = all->codes + first * all->stride,
                 .scales = all->scales + first * all->numBlocks,
                 .sums = all->sums + first * all->numBlocks,
                 .stride = all->stride,
                 .numBlocks = all->numBlocks,
                 .together = active->numRows < LANES_OF_ROWS ? 1 : LANES_OF_ROWS};
}

static void code_slots(void *context, int chunk, int thread) {
  (void)thread;
  const Run *run = context;
  FOR_CHUNK(slot, run->numSlots) {
    if (run->slots[slot].row < 0) continue;
    const Active *active = run->active + run->slots[slot].active;
    const float *x = run->input + (size_t)(run->takesSlots ? slot : run->slots[slot].row) * run->inputStride;
    Codes codes = codes_of(run, active);
    code_row(run->linear, x, run->inputSize, &codes, slot - active->firstSlot);
  }
}

/** Codes the inputs of all slots for the layer: their rows, or what the slots have themselves. */
static void code_all_slots(Run *run, const Linear *linear, const float *input, size_t stride, int size, int takesSlots) {
  take_input(run, linear, input, stride, size);
  run->takesSlots = takesSlots;
  const int chunkSize = run->numSlots / (4 * threads_count(run->threads));
  each(run, run->numSlots, chunkSize < 4 ? 4 : chunkSize, code_slots);
}

/** The layer of an expert. `first` is that of the first one, and the others follow it. */
static Linear linear_of(const Linear *first, int expert) {
  Linear linear = *first;
  const size_t outputs = (size_t)first->groups * GROUP;
  linear.weights += expert * (outputs * first->width * first->bits / 8);
  linear.scales += expert * (outputs * (first->bits == 4 ? first->width / BLOCK4 : 1));
  return linear;
}

/** Groups of outputs of an expert, for a chunk. */
typedef struct {
  const Active *active;
  int from, to;
} ExpertPart;

static int parts_of(const Run *run, int groups) { return (groups + run->chunkSize - 1) / run->chunkSize; }

static ExpertPart part_of(const Run *run, int chunk, int groups) {
  const int parts = parts_of(run, groups), from = chunk % parts * run->chunkSize;
  return (ExpertPart){run->active + chunk / parts, from, from + run->chunkSize < groups ? from + run->chunkSize : groups};
}

static void gate_experts(void *context, int chunk, int thread) {
  (void)thread;
  const Run *run = context;
  const Layer *layer = run->model->layers + run->l;
  const ExpertPart part = part_of(run, chunk, layer->gate.groups);
  const Linear gate = linear_of(&layer->gate, part.active->expert), up = linear_of(&layer->up, part.active->expert);
  const Codes codes = codes_of(run, part.active);
  gated_product(&gate, &up, run->model->isGelu, part.from, part.to, &codes, part.active->numRows,
                run->act + part.active->firstSlot * run->actStride, run->actStride);
}

static void multiply_experts(void *context, int chunk, int thread) {
  (void)thread;
  const Run *run = context;
  const Layer *layer = run->model->layers + run->l;
  const ExpertPart part = part_of(run, chunk, layer->down.groups);
  const Linear down = linear_of(&layer->down, part.active->expert);
  const Codes codes = codes_of(run, part.active);
  product(&down, part.from, part.to, &codes, part.active->numRows,
          run->outputs + part.active->firstSlot * run->hiddenStride, run->hiddenStride, 0);
}

/** Runs `chunk` for all groups of all chosen experts. */
static void each_part(Run *run, int groups, Chunk chunk) {
  run->chunkSize = groups_per_chunk(run, run->numActive * groups);
  threads_run(run->threads, run->numActive * parts_of(run, groups), chunk, run);
}

static void add_experts(void *context, int chunk, int thread) {
  (void)thread;
  const Run *run = context;
  const int used = run->model->numUsed;
  FOR_CHUNK(row, run->numRows) {
    const float *shares = run->shares + (size_t)row * run->sharesStride;
    const int32_t *slots = run->slotOf + (size_t)row * used;
    float *const h = run->hidden + row * run->hiddenStride;
    for (size_t i = 0; i < run->hiddenStride; i += 16) {
      v16f sum = {};
      for (int k = 0; k < used; k++) sum += load_f(run->outputs + slots[k] * run->hiddenStride + i) * shares[k];
      store_f(h + i, load_f(h + i) + sum);
    }
  }
}

/** Adds what the experts of the layer compute to the hidden rows. */
static void mix_experts(Run *run, const Layer *layer) {
  const Model *m = run->model;
  run->kept = run->keptRows;
  code_hidden(run, &layer->router, &layer->norm2);
  run->kept = 0;
  each(run, layer->router.groups, groups_per_chunk(run, layer->router.groups), route_groups);
  each(run, run->numRows, rows_per_chunk(run), choose_rows);
  place_rows(run);
  code_all_slots(run, &layer->up, layer->norm2.weight ? run->keptRows : run->hidden, run->hiddenStride, m->hidden, 0);
  each_part(run, layer->gate.groups, gate_experts);
  code_all_slots(run, &layer->down, run->act, run->actStride, m->expertSize, 1);
  each_part(run, layer->down.groups, multiply_experts);
  each(run, run->numRows, rows_per_chunk(run), add_experts);
}
