/* Attention of a few rows over blocks of the pool, at once or in parts. Included by run.h. */
#pragma once
#include "scores.h"
#include "shares.h"

/*
 * The result of a row depends on no order: the largest score comes first, then codes of probabilities are added as
 * integers. So the same context in other slots, chunks, parts or batches gives the same bits.
 */

/** Lower bound of the largest scale, for a row that sees only zeros. */
static const float TINY = 1e-30f;

/** What a part of an item finds: Q queries, R rows. */
typedef struct {
  /** [Q][16]: largest scores. [R][16]: largest scales of values. */
  float *most, *largest;
  Shares shares;
} Part;

/** Memory of one thread. Q queries, R rows. */
typedef struct {
  /** Of an item that is not in parts. */
  Part part;
  float *scores;
  /** [Q], [R]: largest of all parts. */
  float *most, *largest;
  /** For 2Q codes of one block. */
  CodeList list;
  /** [max(headSize / 4, 16)][4] vectors of one block. */
  int8_t *mixed;
} AttendMemory;

ALWAYS int queries_of(const Attend *a) {
  return (a->item->endRow - a->item->firstRow) * (a->model->heads / a->model->kvHeads);
}

/** Part `part` of numParts: about as many scores in each. */
static void score_part(const Attend *a, int part, int numParts, float *scores, const Part *out, int8_t *mixed) {
  const size_t from = a->item->numScores * part / numParts, to = a->item->numScores * (part + 1) / numParts;
  for (int i = 0; i < 16 * queries_of(a); i++) out->most[i] = -__builtin_inff();
  for (int i = 0; i < 16 * (a->item->endRow - a->item->firstRow); i++) out->largest[i] = TINY;
  Walk walk = walk_from_start(a->item);
  Seen seen, next;
  for (int more = walk_on(a->model, a->view, a->item, &walk, &next); more;) {
    seen = next;
    more = walk_on(a->model, a->view, a->item, &walk, &next);
    if (seen.scores >= to) break;
    if (seen.scores >= from) score_block(a, &seen, next.block, scores, out->most, out->largest, mixed);
  }
}

/** Finds the largest scores and scales of all parts. most: [queries], largest: [rows]. */
static void find_largest(const Attend *a, const Part *parts, int numParts, float *most, float *largest) {
  for (int q = 0; q < queries_of(a); q++) {
    v16f all = load_f(parts->most + 16 * q);
    for (int p = 1; p < numParts; p++) all = max_f(all, load_f(parts[p].most + 16 * q));
    most[q] = largest_of(all);
  }
  // The vectors end within the memory of `most`: see carve.
  if (a->model->scoreCap > 0) limit(most, padded(queries_of(a), 16), a->model->scoreCap * LOG2_E);
  for (int row = 0; row < a->item->endRow - a->item->firstRow; row++) {
    v16f all = load_f(parts->largest + 16 * row);
    for (int p = 1; p < numParts; p++) all = max_f(all, load_f(parts[p].largest + 16 * row));
    largest[row] = largest_of(all);
  }
}

/** Adds up the values for one part. All parts of score_part must be done. `out` is one of `parts`. */
static void share_part(const Attend *a, int part, int numParts, const float *scores, const Part *parts,
                       const Shares *out, AttendMemory *m) {
  const size_t from = a->item->numScores * part / numParts, to = a->item->numScores * (part + 1) / numParts;
  const int Q = queries_of(a);
  memset(out->products, 0, sizeof(int32_t) * 2 * Q * padded(a->model->headSize, 64));
  memset(out->powers, 0, sizeof(uint64_t) * 8 * Q);
  memset(out->codeSums, 0, sizeof(int32_t) * 32 * Q);
  find_largest(a, parts, numParts, m->most, m->largest);
  Walk walk = walk_from_start(a->item);
  Seen seen, next;
  for (int more = walk_on(a->model, a->view, a->item, &walk, &next); more;) {
    seen = next;
    more = walk_on(a->model, a->view, a->item, &walk, &next);
    if (seen.scores >= to) break;
    if (seen.scores >= from)
      share_block(a, &seen, next.block, scores, m->most, m->largest, out, &m->list, m->mixed);
  }
}

ALWAYS uint64_t total_of(const Part *parts, int numParts, int query) {
  uint64_t total = 0;
  for (int p = 0; p < numParts; p++)
    for (int i = 0; i < 8; i++) total += parts[p].shares.powers[8 * query + i];
  return total;
}

/** Adds up the parts. */
static void finish_item(const Attend *a, const Part *parts, int numParts, float *mostOf, float *largest) {
  const int G = a->model->heads / a->model->kvHeads, D = a->model->headSize, wide = padded(D, 64);
  find_largest(a, parts, numParts, mostOf, largest);
  for (int q = 0; q < queries_of(a); q++) {
    float *out = a->out + (a->item->firstRow + q / G) * a->outStride + (size_t)(a->item->kvHead * G + q % G) * D;
    const float total = (float)(int64_t)total_of(parts, numParts, q) * (1 / POWER_UNIT);
    const float factor = largest[q / G] * (1.f / 127) / total;
    int32_t biases[2] = {0, 0};
    for (int i = 0; i < (BIAS ? 2 * numParts : 0); i++)
      biases[i % 2] += BIAS * sum_of(load_i(parts[i / 2].shares.codeSums + (2 * q + i % 2) * 16));
    for (int c = 0; c < wide; c += 64) {
      float sums[64];
      v16f moved[4];
      for (int j = 0; j < 64; j += 16) {
        const size_t at = (size_t)2 * q * wide + c + j;
        v16i high = splat_i(-biases[0]), low = splat_i(-biases[1]);
        for (int p = 0; p < numParts; p++) {
          high += load_i(parts[p].shares.products + at);
          low += load_i(parts[p].shares.products + at + wide);
        }
        store_f(sums + j, (to_f(high) + to_f(low) * (1.f / 254)) * factor);
      }
      // mix() is its own inverse here.
      mixed_f(sums, moved);
      memcpy(out + c, moved, 4 * (D - c < 64 ? D - c : 64));
    }
  }
}

/** Adds the probabilities of an item, which has one row, to what the slots of its blocks have received. */
static void receive(const Attend *a, const AttendMemory *m) {
  Walk walk = walk_from_start(a->item);
  Seen seen;
  const Block *first = a->view->blocks + a->view->spans[a->item->firstSpan].firstBlock;
  while (walk_on(a->model, a->view, a->item, &walk, &seen)) {
    float *most = a->most + 64 * (seen.block - first), *sum = a->sum + 64 * (seen.block - first);
    for (int q = 0; q < queries_of(a); q++) {
      const float total = (float)(int64_t)total_of(&m->part, 1, q);
      for (int j = 0; j < 4; j++) {
        const v16f score = load_f(m->scores + seen.scores + (size_t)64 * q + 16 * j);
        // A slot that the row does not see receives nothing, not the least power.
        const v16f p = select_f(score > -__builtin_inff(), power_f(score - m->most[q]) / total, splat_f(0));
        for (int i = 0; i < 16; i++) {
          const int slot = 16 * (i / 4) + 4 * j + i % 4;
          if (p[i] > most[slot]) most[slot] = p[i];
          sum[slot] += p[i];
        }
      }
    }
  }
}

static void attend(const Attend *a, AttendMemory *m) {
  score_part(a, 0, 1, m->scores, &m->part, m->mixed);
  share_part(a, 0, 1, m->scores, &m->part, &m->part.shares, m);
  if (a->most) receive(a, m);
  finish_item(a, &m->part, 1, m->most, m->largest);
}
