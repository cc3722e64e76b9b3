/* Random models and texts for fuzz.c. The same seed gives the same case on every platform. Runs nothing. */
#pragma once
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../step.h"

enum { MAX_LAYERS = 3, MAX_SEQUENCES = 3, MAX_BUFFERS = 512 };
/** Tokens of a sequence, of all together, and at most computed for one that is not long. */
enum { MAX_LENGTH = 1500, MAX_TOKENS = MAX_SEQUENCES * MAX_LENGTH, MAX_MORE = 48 };

static uint64_t state;
static uint64_t next_random(void) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}
static int below(int n) { return (int)((next_random() >> 33) % (uint64_t)n); }
static int between(int from, int to) { return from + below(to - from + 1); }
static int percent(int n) { return below(100) < n; }
/** From -1 to 1. */
static float unit(void) { return (float)(below(1 << 24) - (1 << 23)) / (1 << 23); }
static float power_of_two(int exponent) { return exponent < 0 ? 1 / (float)(1 << -exponent) : (float)(1 << exponent); }
static int pad(int n, int to) { return (n + to - 1) / to * to; }

static void *buffers[MAX_BUFFERS];
static int numBuffers;
/** Exactly `size` bytes of zeros until free_all. Often not aligned to vectors, as in a weight file. */
static void *take(size_t size) {
  const size_t shift = 4 * below(4);
  char *base = numBuffers < MAX_BUFFERS ? calloc(1, size + shift) : 0;
  if (!base) {
    fprintf(stderr, "no memory for %zu bytes\n", size);
    exit(2);
  }
  buffers[numBuffers++] = base;
  return base + shift;
}
static void free_all(void) {
  while (numBuffers > 0) free(buffers[--numBuffers]);
}

static float *random_floats(int n, int wide, float size, float middle) {
  float *out = take(sizeof(float) * wide);
  for (int i = 0; i < n; i++) out[i] = middle + size * unit();
  return out;
}

/** Eight codes from -most to most. */
static void random_codes(int8_t out[8], int most) {
  const uint64_t bits = next_random();
  memcpy(out, &bits, 8);
  for (int i = 0; i < 8; i++) out[i] = most < 127 ? out[i] % (most + 1) : out[i] == -128 ? -127 : out[i];
}

static void fill8(int8_t *weights, const Linear *m, int rows, int width, int most) {
  int8_t codes[8] = {0};
  for (int row = 0; row < rows; row++)
    for (int i = 0; i < width; i++) {
      if (i % 8 == 0) random_codes(codes, most);
      weights[((size_t)(row / GROUP) * (m->width / 4) + i / 4) * 4 * GROUP + row % GROUP * 4 + i % 4] = codes[i % 8];
    }
}

static void fill4(uint8_t *weights, const Linear *m, int rows, int width, int most) {
  const int vectors = m->width / 8;
  int8_t codes[8] = {0};
  memset(weights, 0x88, (size_t)m->groups * GROUP * m->width / 2);
  for (int row = 0; row < rows; row++)
    for (int i = 0; i < width; i++) {
      if (i % 8 == 0) random_codes(codes, most);
      uint8_t *at = weights + ((size_t)(row / GROUP) * vectors + i / 8) * 4 * GROUP + row % GROUP * 4 + i % 4;
      const int nibble = most < 8 ? 8 + codes[i % 8] : codes[i % 8] & 0x0f;
      *at = i % 8 >= 4 ? (*at & 0x0f) | nibble << 4 : (*at & 0xf0) | nibble;
    }
}

/** The first of `count` layers of the same size. */
static Linear random_linears(int bits, int rows, int width, int most, int count) {
  Linear m = {.bits = bits, .groups = pad(rows, GROUP) / GROUP, .width = pad(width, bits == 8 ? 16 : BLOCK4)};
  const int outputs = m.groups * GROUP, numScales = outputs * (bits == 8 ? 1 : m.width / BLOCK4) * count;
  const size_t size = (size_t)outputs * m.width * bits / 8;
  char *weights = take(size * count);
  for (int i = 0; i < count; i++)
    if (bits == 8) fill8((int8_t *)weights + i * size, &m, rows, width, most);
    else fill4((uint8_t *)weights + i * size, &m, rows, width, most);
  const float scale = power_of_two(between(-11, -6)) * (bits == 8 ? 1 : 16);
  m.weights = (int8_t *)weights;
  m.scales = random_floats(numScales, numScales, scale / 2, scale);
  return m;
}

static Linear random_linear(int bits, int rows, int width, int hasBias, int most) {
  Linear m = random_linears(bits, rows, width, most, 1);
  if (hasBias) m.bias = random_floats(rows, m.groups * GROUP, power_of_two(between(-6, 1)), 0);
  return m;
}

static Norm random_norm(int hidden, int isThere, int hasMean) {
  Norm norm = {0, 0};
  if (isThere) norm.weight = random_floats(hidden, pad(hidden, GROUP), 1, 1);
  if (isThere && hasMean) norm.bias = random_floats(hidden, pad(hidden, GROUP), 1, 0);
  return norm;
}

/** What all layers of a model have in common. */
typedef struct {
  int attentionBits, ffnBits, hasBias, normsBefore, normsAfter, hasMean, headNorms, wholeNorms, hasGate;
} Style;

static void random_layer(Layer *layer, const Model *m, const Style *style) {
  const int queries = m->heads * m->headSize, keys = m->kvHeads * m->headSize, hidden = m->hidden;
  // A layer of zeros has neither largest code nor attention.
  const int most = percent(4) ? 0 : percent(10) ? 1 : 127;
  const int hasBias = style->hasBias;
  layer->norm1 = random_norm(hidden, style->normsBefore, style->hasMean);
  layer->norm2 = random_norm(hidden, style->normsBefore, style->hasMean);
  layer->norm1After = random_norm(hidden, style->normsAfter, style->hasMean);
  layer->qkNorm = style->headNorms ? random_floats(queries + keys, queries + keys, 1, 1) : 0;
  layer->qNorm = style->wholeNorms ? random_floats(queries, queries, 1, 1) : 0;
  layer->kNorm = style->wholeNorms ? random_floats(keys, keys, 1, 1) : 0;
  layer->rope = percent(70) ? MAIN_ROPE : m->hasLocalRope && percent(60) ? LOCAL_ROPE : NO_ROPE;
  layer->hasWindow = m->window > 0 && percent(60);
  layer->keyBias = percent(35) ? random_floats(keys, keys, power_of_two(between(-3, 5)), 0) : 0;
  layer->qkv = random_linear(style->attentionBits, queries + 2 * keys, hidden, hasBias, most);
  layer->o = random_linear(style->attentionBits, hidden, queries, hasBias, 127);
  if (m->numExperts > 0 && percent(70)) {
    // A router of zeros gives all experts the same share.
    layer->router = random_linears(8, 2 * pad(m->numExperts, GROUP), hidden, percent(15) ? 0 : 127, 1);
    layer->gate = random_linears(style->ffnBits, m->expertSize, hidden, 127, m->numExperts);
    layer->up = random_linears(style->ffnBits, m->expertSize, hidden, 127, m->numExperts);
    layer->down = random_linears(style->ffnBits, hidden, m->expertSize, 127, m->numExperts);
    return;
  }
  layer->norm2After = random_norm(hidden, style->normsAfter, style->hasMean);
  if (style->hasGate) layer->gate = random_linear(style->ffnBits, m->ffn, hidden, hasBias, 127);
  layer->up = random_linear(style->ffnBits, m->ffn, hidden, hasBias, 127);
  layer->down = random_linear(style->ffnBits, hidden, m->ffn, hasBias, 127);
}

static Model random_model(void) {
  const int isLarge = percent(4), isWide = percent(15);
  const int groups = isWide ? between(1, 2) : percent(85) ? between(1, 3) : between(4, 8);
  // One statement each: the order within an initializer is the compiler's choice.
  Model m = {.epsilon = 1e-5f};
  m.numLayers = percent(50) ? 1 : between(2, MAX_LAYERS);
  m.hidden = between(1, isLarge ? 300 : 64);
  m.kvHeads = isWide || percent(60) ? 1 : between(2, 3);
  m.headSize = 4 * (isWide ? between(9, 40) : between(1, 8));
  // Wide rows must not lie on the stack.
  const int hasWideRows = m.hidden < 8 && percent(10);
  if (hasWideRows) m.numLayers = 1;
  m.ffn = hasWideRows ? between(130000, 150000) : between(1, isLarge ? 500 : 96);
  m.numExperts = hasWideRows || percent(65) ? 0 : between(1, percent(25) ? 70 : 20);
  if (m.numExperts > 0) {
    m.numUsed = between(1, percent(80) && m.numExperts > 4 ? 4 : m.numExperts);
    m.expertSize = between(1, isLarge ? 200 : 50);
    m.isNormed = percent(50);
  }
  m.vocab = between(1, isLarge ? 700 : 80);
  m.heads = m.kvHeads * groups;
  m.window = percent(50) ? 0 : percent(60) ? between(1, 24) : between(25, 1200);
  m.hasLocalRope = percent(30);
  m.isGelu = percent(40);
  m.scoreCap = percent(25) ? power_of_two(between(-3, 6)) : 0;
  m.logitCap = percent(25) ? power_of_two(between(-3, 6)) : 0;
  int16_t *embedding = take(sizeof(int16_t) * m.vocab * m.hidden);
  for (int i = 0; i < m.vocab * m.hidden; i++) embedding[i] = (int16_t)between(-32767, 32767);
  m.embedding = embedding;
  m.embeddingScales = random_floats(m.vocab, m.vocab, power_of_two(-17), power_of_two(-16));
  Style style = {.hasMean = percent(25)};
  m.norm = random_norm(m.hidden, 1, style.hasMean);
  m.head = random_linear(percent(50) ? 8 : 4, m.vocab, m.hidden, 0, 127);
  m.layers = take(sizeof(Layer) * m.numLayers + 8);
  m.layers = (Layer *)(((uintptr_t)m.layers + 7) / 8 * 8);
  style.attentionBits = percent(60) ? 8 : 4;
  style.ffnBits = percent(60) ? 8 : 4;
  style.hasBias = percent(50);
  style.normsBefore = percent(80);
  style.normsAfter = !style.normsBefore || percent(25);
  style.headNorms = percent(30);
  style.wholeNorms = !style.headNorms && percent(20);
  style.hasGate = percent(80);
  for (int l = 0; l < m.numLayers; l++) random_layer(m.layers + l, &m, &style);
  return m;
}

/** About how many products a run of a case computes. `plain` takes some 15 ns for each with sanitizers. */
static const double MAX_WORK = 1.5e8;

static double linear_work(const Linear *m) { return (double)m->groups * GROUP * m->width; }

/** Products of the linear layers for a token. */
static double token_work(const Model *m) {
  double sum = linear_work(&m->head);
  for (int l = 0; l < m->numLayers; l++) {
    const Layer *layer = m->layers + l;
    const double feedForward = linear_work(&layer->gate) + linear_work(&layer->up) + linear_work(&layer->down);
    sum += linear_work(&layer->qkv) + linear_work(&layer->o);
    sum += layer->router.weights ? 2 * linear_work(&layer->router) + m->numUsed * feedForward : feedForward;
  }
  return sum;
}

/** About how many products a text takes whose last token sees `slots` slots. Values are in vectors, with two codes. */
static double text_work(const Model *m, int numTokens, double slots) {
  const double perSlot = (double)m->numLayers * m->heads * (m->headSize + 2 * pad(m->headSize, 64));
  return numTokens * (token_work(m) + perSlot * slots / 2);
}

/** Sequences that may begin with tokens of an earlier one. */
typedef struct {
  int numTokens, numSequences;
  int ids[MAX_TOKENS], positions[MAX_TOKENS];
  /** Of each sequence: its length, how many tokens are another's, which one, and the tokens. */
  int lengths[MAX_SEQUENCES], forks[MAX_SEQUENCES], parents[MAX_SEQUENCES], tokens[MAX_SEQUENCES][MAX_LENGTH];
  /** [2][longest][headSize / 2], of each position. */
  float *cos, *sin;
  int longest;
} Text;

static void random_text(Text *text, const Model *m) {
  const int half = m->headSize / 2, isLong = percent(3) && text_work(m, 600, 600) < MAX_WORK;
  int longest = 0;
  text->numTokens = 0;
  text->numSequences = percent(50) ? 1 : between(2, MAX_SEQUENCES);
  for (int s = 0; s < text->numSequences; s++) {
    // Behind a long beginning, sequences share whole blocks.
    const int isForked = s > 0 && (isLong || percent(40)), parent = isForked ? below(s) : 0;
    const int most = text->lengths[parent] < MAX_LENGTH - MAX_MORE ? text->lengths[parent] : MAX_LENGTH - MAX_MORE;
    const int fork = isForked ? between(1, most) : 0;
    int more = isLong && s == 0                ? between(1000, 1300)
               : percent(8) && m->hidden <= 64 ? between(1, MAX_MORE)
                                               : between(1, 10);
    while (more > 1 && text_work(m, text->numTokens + more, fork + more) > MAX_WORK) more -= (more + 9) / 10;
    text->parents[s] = parent;
    text->forks[s] = fork;
    text->lengths[s] = fork + more;
    if (fork + more > longest) longest = fork + more;
    for (int i = 0; i < fork; i++) text->tokens[s][i] = text->tokens[parent][i];
    for (int i = fork; i < fork + more; i++) {
      const int token = text->numTokens++;
      text->tokens[s][i] = token;
      text->positions[token] = i;
      text->ids[token] = below(m->vocab);
    }
  }
  text->longest = longest;
  text->cos = random_floats(2 * longest * half, 2 * longest * half, 1, 0);
  text->sin = random_floats(2 * longest * half, 2 * longest * half, 1, 0);
}
