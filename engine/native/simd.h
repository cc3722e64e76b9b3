/*
 * Vectors of 16 numbers and the integer product, for each instruction set. All other arithmetic is plain vector code
 * of the compiler. Only fma_f fuses, everywhere, so every instruction set gives the same bits.
 */
#pragma once
#include <stdint.h>
#include <string.h>

typedef float v16f __attribute__((vector_size(64), aligned(4)));
typedef int32_t v16i __attribute__((vector_size(64), aligned(4)));
typedef int8_t v64b __attribute__((vector_size(64), aligned(1)));
typedef int8_t v16b __attribute__((vector_size(16), aligned(1)));
typedef uint64_t v8u __attribute__((vector_size(64), aligned(8)));
typedef double v16d __attribute__((vector_size(128), aligned(8)));
typedef int64_t v16l __attribute__((vector_size(128), aligned(8)));
typedef int16_t v32s __attribute__((vector_size(64), aligned(2)));

#define ALWAYS static inline __attribute__((always_inline))
/** Many calls, or seldom used: kept small. */
#define ONCE static __attribute__((noinline))
#define UNROLL _Pragma("clang loop unroll(full)")

ALWAYS v16f load_f(const float *p) { v16f v; memcpy(&v, p, 64); return v; }
ALWAYS void store_f(float *p, v16f v) { memcpy(p, &v, 64); }
ALWAYS v16i load_i(const int32_t *p) { v16i v; memcpy(&v, p, 64); return v; }
ALWAYS void store_i(int32_t *p, v16i v) { memcpy(p, &v, 64); }
ALWAYS v8u load_u(const uint64_t *p) { v8u v; memcpy(&v, p, 64); return v; }
ALWAYS void store_u(uint64_t *p, v8u v) { memcpy(p, &v, 64); }
ALWAYS v64b load_b(const int8_t *p) { v64b v; memcpy(&v, p, 64); return v; }
ALWAYS v16f splat_f(float x) { return (v16f){} + x; }
ALWAYS v16i splat_i(int32_t x) { return (v16i){} + x; }
ALWAYS v16f to_f(v16i v) { return __builtin_convertvector(v, v16f); }
/** Rounds towards zero. */
ALWAYS v16i truncate(v16f v) { return __builtin_convertvector(v, v16i); }
ALWAYS v16f as_f(v16i v) { return (v16f)v; }
ALWAYS v16i as_i(v16f v) { return (v16i)v; }
ALWAYS v16f select_f(v16i mask, v16f yes, v16f no) { return as_f((mask & as_i(yes)) | (~mask & as_i(no))); }
ALWAYS v16f abs_f(v16f v) { return as_f(as_i(v) & 0x7fffffff); }
/** The larger of both; `a` if one is not a number. */
ALWAYS v16f max_f(v16f a, v16f b) { return select_f(b > a, b, a); }
/** Nearest integer, half to even, for |v| < 2^22. */
ALWAYS v16i nearest(v16f v) { return as_i(v + 12582912.f) - as_i(splat_f(12582912.f)); }

/** The vector turned by n places. */
#define TURNED(v, n)                                                                                          \
  __builtin_shufflevector(v, v, (n) & 15, ((n) + 1) & 15, ((n) + 2) & 15, ((n) + 3) & 15, ((n) + 4) & 15,     \
                          ((n) + 5) & 15, ((n) + 6) & 15, ((n) + 7) & 15, ((n) + 8) & 15, ((n) + 9) & 15,     \
                          ((n) + 10) & 15, ((n) + 11) & 15, ((n) + 12) & 15, ((n) + 13) & 15,                 \
                          ((n) + 14) & 15, ((n) + 15) & 15)
ALWAYS float largest_of(v16f v) {
  v = max_f(v, TURNED(v, 8));
  v = max_f(v, TURNED(v, 4));
  v = max_f(v, TURNED(v, 2));
  return max_f(v, TURNED(v, 1))[0];
}
ALWAYS int32_t sum_of(v16i v) {
  v += TURNED(v, 8);
  v += TURNED(v, 4);
  v += TURNED(v, 2);
  return v[0] + v[1];
}
/** Adds halves, so that the order is the same everywhere. */
ALWAYS float sum_of_f(v16f v) {
  v += TURNED(v, 8);
  v += TURNED(v, 4);
  v += TURNED(v, 2);
  return v[0] + v[1];
}

/*
 * dot(sum, w, x): sum[i] += w[4i] x[0] + .. + w[4i+3] x[3], for 8-bit codes from -127 to 127. `w` comes from prepare(),
 * and instruction sets whose left side is unsigned add BIAS to it, so the caller subtracts BIAS * (sum of x).
 */
#if defined(__AVX512VNNI__)
#include <immintrin.h>
#define ISA avx512vnni
#define BIAS 128
#define PREFERRED_ROWS 12
#define TILE_GROUPS 2
ALWAYS v64b prepare(v64b w) { return (v64b)((v16i)w ^ (int32_t)0x80808080); }
ALWAYS v16i dot(v16i sum, v64b w, int32_t x) {
  return (v16i)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, _mm512_set1_epi32(x));
}
#elif defined(__AVX2__)
#include <immintrin.h>
#define PREFERRED_ROWS 4
#define TILE_GROUPS 1
#if defined(__AVXVNNI__)
#define ISA avxvnni
#define BIAS 128
ALWAYS v64b prepare(v64b w) { return (v64b)((v16i)w ^ (int32_t)0x80808080); }
ALWAYS __m256i dot_half(__m256i sum, __m256i w, __m256i x) { return _mm256_dpbusd_avx_epi32(sum, w, x); }
#else
#define ISA avx2
#define BIAS 0
ALWAYS v64b prepare(v64b w) { return w; }
/** |w| * (x with the sign of w): pairs of products are at most 2 * 127 * 127, so they never saturate 16 bits. */
ALWAYS __m256i dot_half(__m256i sum, __m256i w, __m256i x) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
#endif
typedef struct { __m256i a, b; } Halves;
ALWAYS v16i dot(v16i sum, v64b w, int32_t x) {
  Halves s, c;
  memcpy(&s, &sum, 64);
  memcpy(&c, &w, 64);
  const __m256i codes = _mm256_set1_epi32(x);
  s.a = dot_half(s.a, c.a, codes);
  s.b = dot_half(s.b, c.b, codes);
  memcpy(&sum, &s, 64);
  return sum;
}
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#define ISA dotprod
#define BIAS 0
#define PREFERRED_ROWS 4
#define TILE_GROUPS 1
typedef struct { int32x4_t q[4]; } Quarters;
typedef struct { int8x16_t q[4]; } ByteQuarters;
ALWAYS v64b prepare(v64b w) { return w; }
ALWAYS v16i dot(v16i sum, v64b w, int32_t x) {
  Quarters s;
  ByteQuarters c;
  memcpy(&s, &sum, 64);
  memcpy(&c, &w, 64);
  const int8x16_t codes = vreinterpretq_s8_s32(vdupq_n_s32(x));
  for (int i = 0; i < 4; i++) s.q[i] = vdotq_s32(s.q[i], c.q[i], codes);
  memcpy(&sum, &s, 64);
  return sum;
}
#else
#if defined(__aarch64__)
#include <arm_neon.h>
#endif
#define ISA plain
#define BIAS 0
#define PREFERRED_ROWS 4
#define TILE_GROUPS 1
ALWAYS v64b prepare(v64b w) { return w; }
ALWAYS v16i dot(v16i sum, v64b w, int32_t x) {
  int8_t codes[4];
  memcpy(codes, &x, 4);
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 4; j++) sum[i] += w[4 * i + j] * codes[j];
  return sum;
}
#endif

/**
 * The nearest 8-bit codes of 64 numbers. Lane l of v[j] becomes the bytes 16l + 4j .. 16l + 4j + 3: numbers in the
 * order of mix() become bytes in their own order.
 */
ALWAYS v64b pack(const v16i v[4]) {
  v64b out;
#if defined(__AVX512VNNI__)
  out = (v64b)_mm512_packs_epi16(_mm512_packs_epi32((__m512i)v[0], (__m512i)v[1]),
                                 _mm512_packs_epi32((__m512i)v[2], (__m512i)v[3]));
#elif defined(__AVX2__)
  Halves h[4], bytes;
  memcpy(h, v, 256);
  bytes.a = _mm256_packs_epi16(_mm256_packs_epi32(h[0].a, h[1].a), _mm256_packs_epi32(h[2].a, h[3].a));
  bytes.b = _mm256_packs_epi16(_mm256_packs_epi32(h[0].b, h[1].b), _mm256_packs_epi32(h[2].b, h[3].b));
  memcpy(&out, &bytes, 64);
#else
  for (int j = 0; j < 4; j++) {
    const v16i above = v[j] > 127, below = v[j] < -128;
    const v16i code = (above & 127) | (below & -128) | (~(above | below) & v[j]);
    const v16b bytes = __builtin_convertvector(code, v16b);
    for (int l = 0; l < 4; l++) memcpy((int8_t *)&out + 16 * l + 4 * j, (const int8_t *)&bytes + 4 * l, 4);
  }
#endif
  return out;
}

ALWAYS int is_zero(v64b v) {
#if defined(__AVX512VNNI__)
  return _mm512_test_epi32_mask((__m512i)v, (__m512i)v) == 0;
#else
  const v8u u = (v8u)v;
  return (u[0] | u[1] | u[2] | u[3] | u[4] | u[5] | u[6] | u[7]) == 0;
#endif
}

/** Adds the sums of groups of four codes. Only where BIAS is not 0. */
ALWAYS v16i add_codes(v16i sum, v64b codes) {
#if defined(__AVX512VNNI__)
  return (v16i)_mm512_dpbusd_epi32((__m512i)sum, _mm512_set1_epi8(1), (__m512i)codes);
#elif defined(__AVXVNNI__)
  Halves s, c;
  memcpy(&s, &sum, 64);
  memcpy(&c, &codes, 64);
  s.a = _mm256_dpbusd_avx_epi32(s.a, _mm256_set1_epi8(1), c.a);
  s.b = _mm256_dpbusd_avx_epi32(s.b, _mm256_set1_epi8(1), c.b);
  memcpy(&sum, &s, 64);
#else
  (void)codes;
#endif
  return sum;
}

/** a * b + c, rounded once, as only some instruction sets can. */
ALWAYS v16f fma_f(v16f a, v16f b, v16f c) {
#if defined(__AVX512VNNI__)
  return (v16f)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
  struct { __m256 a, b; } x, y, z;
  memcpy(&x, &a, 64);
  memcpy(&y, &b, 64);
  memcpy(&z, &c, 64);
  z.a = _mm256_fmadd_ps(x.a, y.a, z.a);
  z.b = _mm256_fmadd_ps(x.b, y.b, z.b);
  memcpy(&c, &z, 64);
  return c;
#elif defined(__aarch64__)
  struct { float32x4_t q[4]; } x, y, z;
  memcpy(&x, &a, 64);
  memcpy(&y, &b, 64);
  memcpy(&z, &c, 64);
  for (int i = 0; i < 4; i++) z.q[i] = vfmaq_f32(z.q[i], x.q[i], y.q[i]);
  memcpy(&c, &z, 64);
  return c;
#else
  // The product is exact. A sum that is not exact is rounded to odd, so the conversion to 32 bits rounds correctly.
  const v16d product = __builtin_convertvector(a, v16d) * __builtin_convertvector(b, v16d);
  const v16d other = __builtin_convertvector(c, v16d), sum = product + other, back = sum - product;
  const v16d rest = (product - (sum - back)) + (other - back);
  const v16l isEven = ((v16l)sum & 1) - 1, isOutward = (rest > 0) == (sum > 0);
  const v16l bits = (v16l)sum + ((rest != 0) & isEven & (isOutward * -2 - 1));
  return __builtin_convertvector((v16d)bits, v16f);
#endif
}

static const float LOG2_E = 1.44269504f;
/** Unit of powers. They are added as integers: 4 per lane and block of the pool are below 2^31. */
static const float POWER_UNIT = 67108864.f;

/** 2^x in POWER_UNIT for x <= 0, and for x < -100 as for -100. Relative error below 2e-7. */
ALWAYS v16f power_f(v16f x) {
  const float unit = POWER_UNIT;
  x = max_f(splat_f(-100.f), x);
  const v16f n = x + 12582912.f;
  const v16f r = x - (n - 12582912.f);
  v16f p = fma_f(r, splat_f(0x1.5bba14p-10f * unit), splat_f(0x1.3cea88p-7f * unit));
  p = fma_f(p, r, splat_f(0x1.c6b752p-5f * unit));
  p = fma_f(p, r, splat_f(0x1.ebf9bcp-3f * unit));
  p = fma_f(p, r, splat_f(0x1.62e42ap-1f * unit));
  p = fma_f(p, r, splat_f(unit));
  return as_f(as_i(p) + (as_i(n) << 23));
}

/** Four codes as one number. */
ALWAYS int32_t four(const int8_t *p) { int32_t v; memcpy(&v, p, 4); return v; }

#define LANES(b) b + 0, b + 1, b + 2, b + 3
/**
 * Mixes four rows of 64 bytes within lanes of 16: out[j] has, in lane l, the four rows' bytes of columns 16l + 4j ..
 * 16l + 4j + 3, column by column.
 */
ALWAYS void mix(v64b a, v64b b, v64b c, v64b d, v64b out[4]) {
#define LO(l) 16 * l, 64 + 16 * l, 16 * l + 1, 65 + 16 * l, 16 * l + 2, 66 + 16 * l, 16 * l + 3, 67 + 16 * l, \
  16 * l + 4, 68 + 16 * l, 16 * l + 5, 69 + 16 * l, 16 * l + 6, 70 + 16 * l, 16 * l + 7, 71 + 16 * l

  const v64b ab_lo = __builtin_shufflevector(a, b, LO(0), LO(1), LO(2), LO(3));
  const v64b cd_lo = __builtin_shufflevector(c, d, LO(0), LO(1), LO(2), LO(3));
#define HI(l) 16 * l + 8, 72 + 16 * l, 16 * l + 9, 73 + 16 * l, 16 * l + 10, 74 + 16 * l, 16 * l + 11, 75 + 16 * l, \
  16 * l + 12, 76 + 16 * l, 16 * l + 13, 77 + 16 * l, 16 * l + 14, 78 + 16 * l, 16 * l + 15, 79 + 16 * l
  const v64b ab_hi = __builtin_shufflevector(a, b, HI(0), HI(1), HI(2), HI(3));
  const v64b cd_hi = __builtin_shufflevector(c, d, HI(0), HI(1), HI(2), HI(3));
#define WLO(l) 8 * l, 32 + 8 * l, 8 * l + 1, 33 + 8 * l, 8 * l + 2, 34 + 8 * l, 8 * l + 3, 35 + 8 * l
#define WHI(l) 8 * l + 4, 36 + 8 * l, 8 * l + 5, 37 + 8 * l, 8 * l + 6, 38 + 8 * l, 8 * l + 7, 39 + 8 * l
  out[0] = (v64b)__builtin_shufflevector((v32s)ab_lo, (v32s)cd_lo, WLO(0), WLO(1), WLO(2), WLO(3));
  out[1] = (v64b)__builtin_shufflevector((v32s)ab_lo, (v32s)cd_lo, WHI(0), WHI(1), WHI(2), WHI(3));
  out[2] = (v64b)__builtin_shufflevector((v32s)ab_hi, (v32s)cd_hi, WLO(0), WLO(1), WLO(2), WLO(3));
  out[3] = (v64b)__builtin_shufflevector((v32s)ab_hi, (v32s)cd_hi, WHI(0), WHI(1), WHI(2), WHI(3));
#undef LO
#undef HI
#undef WLO
#undef WHI
}
/** 64 numbers in the order of mix(): out[j] has, in lane l, those of columns 16l + 4j .. 16l + 4j + 3. */
ALWAYS void mixed_f(const float *p, v16f out[4]) {
  const v16f a = load_f(p), b = load_f(p + 16), c = load_f(p + 32), d = load_f(p + 48);
#define JOIN(j) out[j] = __builtin_shufflevector( \
    __builtin_shufflevector(a, b, LANES(4 * j), LANES(16 + 4 * j), -1, -1, -1, -1, -1, -1, -1, -1), \
    __builtin_shufflevector(c, d, LANES(4 * j), LANES(16 + 4 * j), -1, -1, -1, -1, -1, -1, -1, -1), \
    0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
  JOIN(0);
  JOIN(1);
  JOIN(2);
  JOIN(3);
#undef JOIN
}
ALWAYS void mixed_i(const int32_t *p, v16i out[4]) {
  v16f moved[4];
  mixed_f((const float *)p, moved);
  for (int j = 0; j < 4; j++) out[j] = as_i(moved[j]);
}
