/*
 * Runs random models with all kernels of this processor, in random pools and chunks and with several threads. All must
 * give the bits of `plain` in one chunk. Prints a checksum, which must be the same on all platforms.
 */
#include "views.h"

static const char *const OUTCOMES[] = {"logits", "queries", "keys", "values", "key scales", "value scales"};
static const char *const KERNELS[] = {"avx512vnni", "avxvnni", "avx2", "dotprod", "plain"};

static uint64_t seed, checksum = 0xcbf29ce484222325u;
static int caseNumber;

static void add_to_checksum(const void *data, size_t size) {
  for (size_t i = 0; i < size; i++) checksum = (checksum ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
}

static void failed(const World *w, const char *what, int token) {
  printf("seed %llu, case %d: %s with %d threads and %d slots a page: other %s of token %d\n",
         (unsigned long long)seed, caseNumber, w->kernels->name, threads_count(w->threads), w->pool.pageSlots, what,
         token);
  exit(1);
}

static void outcome(const World *w, int kind, int token, const void *data, size_t from, size_t size) {
  char *expected = w->test->expected[kind] + token * w->test->sizes[kind] + from;
  if (w->isReference) memcpy(expected, data, size);
  else if (memcmp(expected, data, size)) failed(w, OUTCOMES[kind], token);
}

/** Bytes that no result may depend on: not even a number, for scales. */
static void *garbage(size_t size, int isFloat) {
  uint8_t *out = take(size);
  if (isFloat) memset(out, 0xff, size);
  for (size_t i = 0; i + 8 <= size && !isFloat; i += 8) random_codes((int8_t *)out + i, 127);
  return out;
}

static void place_tokens(World *w, int numSlots) {
  const int n = w->test->text.numTokens, start = below(numSlots), isInOrder = percent(40);
  int *order = take(sizeof(int) * numSlots);
  for (int i = 0; i < numSlots; i++) order[i] = (start + i) % numSlots;
  for (int i = numSlots - 1; i > 0 && !isInOrder; i--) {
    const int j = below(i + 1), other = order[j];
    order[j] = order[i];
    order[i] = other;
  }
  memcpy(w->slots, order, sizeof(int) * n);
}

static void open_world(World *w, const Case *test, const Kernels *kernels, Threads *threads, int isReference) {
  const Model *m = test->m;
  const int n = test->text.numTokens, numSlots = n + below(n + 8), longest = test->text.longest;
  const int D = m->headSize, wanted = percent(25) ? 64 * between(1, 4) : percent(20) ? between(1, 4) : between(1, 256);
  // A block of few slots takes as long as one of 64.
  const int blocks = pad(numSlots, wanted) / wanted * pad(wanted, 64) / 64;
  const int isSlow = text_work(m, n, 64.0 * (blocks < longest ? blocks : longest)) > 3 * MAX_WORK;
  const int L = isSlow ? 64 * between(1, 4) : wanted, places = pad(numSlots, L) / L;
  const size_t rows = (size_t)places * m->kvHeads * L;
  *w = (World){.test = test, .kernels = kernels, .threads = threads, .isReference = isReference};
  w->space = workspace_open(threads_count(threads));
  w->pool = (Pool){.numPlaces = places, .pageSlots = L, .layers = w->layers};
  for (int l = 0; l < m->numLayers; l++)
    w->layers[l] = (PoolLayer){garbage(rows * D, 0), garbage(rows * D, 0), garbage(4 * rows, 1), garbage(4 * rows, 1)};
  place_tokens(w, places * L);
  float *rotations = garbage((size_t)4 * places * D * L, 1);
  for (int t = 0; t < n; t++)
    for (int i = 0; i < D / 2; i++) {
      float *at = rotations + ((size_t)(w->slots[t] / L) * D + i) * L + w->slots[t] % L;
      *at = test->text.cos[test->text.positions[t] * (D / 2) + i];
      at[(size_t)D / 2 * L] = test->text.sin[test->text.positions[t] * (D / 2) + i];
    }
  w->pool.rotations = rotations;
}

static void check_rows(const World *w, int token) {
  const Model *m = w->test->m;
  const int D = m->headSize, L = w->pool.pageSlots, slot = w->slots[token];
  for (int l = 0; l < m->numLayers; l++)
    for (int h = 0; h < m->kvHeads; h++) {
      const size_t head = (size_t)slot / L * m->kvHeads + h, at = head * L + slot % L, n = (size_t)l * m->kvHeads + h;
      int8_t key[160];
      for (int d = 0; d < D; d++) key[d] = w->layers[l].keys[(head * D + d) * L + slot % L];
      outcome(w, KEYS, token, key, n * D, D);
      outcome(w, VALUES, token, w->layers[l].values + at * D, n * D, D);
      outcome(w, KEY_SCALES, token, w->layers[l].keyScales + at, 4 * n, 4);
      outcome(w, VALUE_SCALES, token, w->layers[l].valueScales + at, 4 * n, 4);
    }
}

static void check_received(const World *w, const Step *step, const int *columns, int length) {
  const Case *test = w->test;
  const size_t heads = (size_t)2 * test->m->numLayers * test->m->kvHeads, slots = (size_t)64 * step->views[WHOLE].spans->numBlocks;
  for (size_t h = 0; h < heads; h++)
    for (int i = 0; i < length; i++) {
      float *expected = test->received + h * length + i;
      if (w->isReference) *expected = step->received[h * slots + columns[i]];
      else if (memcmp(expected, step->received + h * slots + columns[i], 4)) failed(w, "received attention", i);
    }
}

/** Runs the pieces as one step, with random outputs, and checks them. */
static void run_pieces(const World *w, const Piece *pieces, int numPieces, int measures) {
  const Model *m = w->test->m;
  const Text *text = &w->test->text;
  const int half = m->headSize / 2, outputs = m->head.groups * GROUP, share = percent(10) ? 0 : percent(40) ? 100 : 40;
  int ids[MAX_TOKENS], tokens[MAX_TOKENS], slots[MAX_TOKENS], logitRows[MAX_TOKENS], queryRows[MAX_TOKENS];
  static Sights sights[NUM_VIEWS];
  int columns[MAX_LENGTH];
  const int firstBuffer = numBuffers, ropes = m->hasLocalRope ? 2 : 1;
  size_t rows = 0;
  for (int p = 0; p < numPieces; p++) rows += pieces[p].to - pieces[p].from;
  float *cos = take(4 * ropes * rows * half), *sin = take(4 * ropes * rows * half);
  Step step = {.numSpans = numPieces, .ids = ids, .cos = cos, .sin = sin, .slots = slots, .logitRows = logitRows,
               .queryRows = queryRows};
  for (int v = 0; v < (m->window > 0 ? NUM_VIEWS : 1); v++)
    step.views[v] = make_view(w, pieces, numPieces, v == NEAR ? m->window : 0, measures, sights + v, columns);
  for (int p = 0; p < numPieces; p++) {
    for (int i = pieces[p].from; i < pieces[p].to; i++) {
      const int row = step.numRows++, token = tokens[row] = text->tokens[pieces[p].sequence][i];
      ids[row] = text->ids[token];
      slots[row] = w->slots[token];
      for (int r = 0; r < ropes; r++) {
        const size_t to = (r * rows + row) * half, from = (size_t)(r * text->longest + text->positions[token]) * half;
        memcpy(cos + to, text->cos + from, 4 * half);
        memcpy(sin + to, text->sin + from, 4 * half);
      }
      if (w->isReference || percent(share)) logitRows[step.numLogits++] = row;
      if (w->isReference || percent(share / 2)) queryRows[step.numQueries++] = row;
    }
  }
  step.logits = take((size_t)4 * step.numLogits * outputs);
  const int S = step.numQueries, D = m->headSize;
  if (S > 0) step.queries = take((size_t)4 * m->numLayers * m->heads * S * D);
  if (measures) step.received = take((size_t)4 * 2 * m->numLayers * m->kvHeads * 64 * sights[WHOLE].numBlocks);
  if (w->kernels->run(m, &w->pool, &step, w->threads, w->space)) failed(w, "memory", 0);
  for (int i = 0; i < step.numLogits; i++)
    outcome(w, LOGITS, tokens[logitRows[i]], step.logits + (size_t)i * m->vocab, 0, 4 * m->vocab);
  for (int h = 0; h < m->numLayers * m->heads; h++)
    for (int i = 0; i < S; i++)
      outcome(w, QUERIES, tokens[queryRows[i]], step.queries + ((size_t)h * S + i) * D, (size_t)4 * h * D, 4 * D);
  for (int row = 0; row < step.numRows; row++) check_rows(w, tokens[row]);
  if (measures) check_received(w, &step, columns, pieces->to);
  while (numBuffers > firstBuffer) free(buffers[--numBuffers]);
  for (int v = 0; v < NUM_VIEWS; v++) {
    free(sights[v].blocks);
    free(sights[v].untils);
    sights[v] = (Sights){.blocks = 0};
  }
}

/** Computes all tokens: in the reference sequence by sequence, else in random chunks of several sequences. */
static void run_world(const World *w) {
  const Text *text = &w->test->text;
  // A long text in few chunks: each one looks through all slots.
  const int most = percent(40) ? MAX_LENGTH : between(1, 20) + text->numTokens / 10;
  int done[MAX_SEQUENCES];
  memcpy(done, text->forks, sizeof done);
  for (int left = text->numTokens; left > 0;) {
    Piece pieces[MAX_SEQUENCES];
    int count = 0, isReady[MAX_SEQUENCES];
    for (int s = 0; s < text->numSequences && !(w->isReference && count); s++) {
      const int rest = text->lengths[s] - done[s];
      const int parent = text->parents[s];
      isReady[s] = text->forks[s] == 0 || (isReady[parent] && done[parent] >= text->forks[s]);
      if (rest == 0 || !isReady[s] || (!w->isReference && percent(30))) continue;
      const int n = w->isReference ? rest : between(1, rest < most ? rest : most);
      pieces[count++] = (Piece){s, done[s], done[s] + n};
    }
    if (count) run_pieces(w, pieces, count, 0);
    for (int p = 0; p < count; p++) {
      left -= pieces[p].to - pieces[p].from;
      done[pieces[p].sequence] = pieces[p].to;
    }
  }
  run_pieces(w, &(Piece){0, w->test->measured, text->lengths[0]}, 1, 1);
}

/** Runs everything in a new pool, and checks that no other slot of the pool has changed. */
static void try_world(const Case *test, const Kernels *kernels, Threads *threads, int isReference) {
  static World w;
  const Model *m = test->m;
  const int firstBuffer = numBuffers;
  open_world(&w, test, kernels, threads, isReference);
  const size_t L = w.pool.pageSlots, D = m->headSize, numSlots = w.pool.numPlaces * L, rows = numSlots * m->kvHeads;
  uint8_t *isTaken = take(numSlots);
  for (int t = 0; t < test->text.numTokens; t++) isTaken[w.slots[t]] = 1;
  PoolLayer before[MAX_LAYERS];
  for (int l = 0; l < m->numLayers; l++) {
    before[l] = (PoolLayer){take(rows * D), take(rows * D), take(4 * rows), take(4 * rows)};
    memcpy(before[l].keys, w.layers[l].keys, rows * D);
    memcpy(before[l].values, w.layers[l].values, rows * D);
  }
  run_world(&w);
  for (int l = 0; l < m->numLayers; l++)
    for (size_t i = 0; i < rows; i++) {
      const size_t slot = i / L / m->kvHeads * L + i % L;
      int isSame = isTaken[slot] || (isnan(w.layers[l].keyScales[i]) && isnan(w.layers[l].valueScales[i]));
      for (size_t d = 0; d < D && !isTaken[slot]; d++)
        isSame &= before[l].keys[(i / L * D + d) * L + i % L] == w.layers[l].keys[(i / L * D + d) * L + i % L] &&
                  before[l].values[i * D + d] == w.layers[l].values[i * D + d];
      if (!isSame) failed(&w, "slots than that", (int)slot);
    }
  workspace_close(w.space);
  while (numBuffers > firstBuffer) free(buffers[--numBuffers]);
}

static void try_case(Threads *const pools[], int numPools) {
  static Case test;
  const Model m = random_model();
  test.m = &m;
  random_text(&test.text, &m);
  const size_t heads = (size_t)m.numLayers * m.kvHeads, D = m.headSize, n = test.text.numTokens;
  const size_t sizes[] = {(size_t)4 * m.vocab, (size_t)4 * m.numLayers * m.heads * D, heads * D, heads * D,
                          4 * heads, 4 * heads};
  memcpy(test.sizes, sizes, sizeof sizes);
  for (int i = 0; i < NUM_OUTCOMES; i++) test.expected[i] = take(n * sizes[i]);
  const int length = test.text.lengths[0];
  test.measured = length - 1 - below(length < 40 ? length : 40);
  test.received = take(8 * heads * length);
  try_world(&test, kernels_named("plain"), pools[0], 1);
  for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++) {
    const Kernels *kernels = kernels_named(KERNELS[i]);
    if (!kernels) continue;
    // What a kernel draws does not change the next case on a processor with others.
    const uint64_t before = state;
    state += i;
    try_world(&test, kernels, pools[percent(75) ? 0 : below(numPools)], 0);
    state = before;
  }
  for (int i = 0; i < NUM_OUTCOMES; i++) add_to_checksum(test.expected[i], n * sizes[i]);
  add_to_checksum(test.received, 8 * heads * length);
  free_all();
}

int main(int argc, char **argv) {
  if (!kernels_named("plain")) return fprintf(stderr, "plain does not run here\n"), 1;
  const int first = argc > 2 ? atoi(argv[2]) : 0, count = argc > 3 ? atoi(argv[3]) : 1000;
  seed = argc > 1 ? strtoull(argv[1], 0, 10) : 1;
  for (caseNumber = first; caseNumber < first + count;) {
    // New threads now and then.
    Threads *const pools[] = {threads_open(1), threads_open(2), threads_open(3), threads_open(5)};
    for (int i = 0; i < 100 && caseNumber < first + count; i++, caseNumber++) {
      state = seed * 0x2545f4914f6cdd1du + (uint64_t)caseNumber * 0x9e6c63d0876a9a47u;
      try_case(pools, 4);
    }
    for (int i = 0; i < 4; i++) threads_close(pools[i]);
  }
  printf("%d cases of seed %llu, checksum %016llx, kernels", count, (unsigned long long)seed,
         (unsigned long long)checksum);
  for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
    if (kernels_named(KERNELS[i])) printf(" %s", KERNELS[i]);
  printf("\n");
  return 0;
}
