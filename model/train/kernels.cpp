// What takes the framework longest on a processor with AMX: causal attention over bfloat16, forward and backward (head size 64, lengths that are multiples of 64),
// and the gradient of the cross entropy.
//
// In attention everything is computed transposed (rows are keys, lanes are queries): so the softmax needs no sums across lanes, and what comes out of one product is
// in the layout that the next one takes. Tensors are [B, T, heads, 64] without gaps; `heads / kvHeads` query heads in a row share a key/value head.
// `first` [B, T] is where each position's document begins, nothing before it is seen; it never falls.
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

using bf16 = uint16_t;
constexpr int D = 64, BLOCK = 64, TILE = 16, CHUNK = 32;
// bfloat16 and float32 values in a tile
constexpr int HALVES = 512, FLOATS = 256;
const float LOG2E = 1.44269504f;

struct alignas(64) TileConfig {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

struct Tiles {
    Tiles() {
        TileConfig c;
        _tile_loadconfig(&c);
    }
    ~Tiles() { _tile_release(); }
};

template <class T> struct Buffer {
    T *at;
    explicit Buffer(size_t n) : at(static_cast<T *>(std::aligned_alloc(64, (n * sizeof(T) + 63) / 64 * 64))) {}
    ~Buffer() { std::free(at); }
    operator T *() const { return at; }
};

// What was stored is in memory before tiles are loaded: the intrinsics do not say that they read it.
inline void settle() { asm volatile("" ::: "memory"); }

// Tiles 0 to 3 are sums [2 rows, 2 columns], 4 and 5 the left, 6 and 7 the right operand.
inline void clearSums() {
    settle();
    _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
}
inline void multiply(const bf16 *a0, const bf16 *a1, size_t strideA, const bf16 *b0, const bf16 *b1) {
    _tile_loadd(4, a0, strideA); _tile_loadd(6, b0, 64); _tile_loadd(5, a1, strideA); _tile_loadd(7, b1, 64);
    _tile_dpbf16ps(0, 4, 6); _tile_dpbf16ps(1, 4, 7); _tile_dpbf16ps(2, 5, 6); _tile_dpbf16ps(3, 5, 7);
}
inline void loadSums(const float *c00, const float *c01, const float *c10, const float *c11) {
    settle();
    _tile_loadd(0, c00, 64); _tile_loadd(1, c01, 64); _tile_loadd(2, c10, 64); _tile_loadd(3, c11, 64);
}
inline void storeSums(float *c00, float *c01, float *c10, float *c11, size_t stride = 64) {
    _tile_stored(0, c00, stride); _tile_stored(1, c01, stride); _tile_stored(2, c10, stride); _tile_stored(3, c11, stride);
}

/** 16 rows of 16 dwords become 16 columns. */
inline void transpose(__m512i r[16]) {
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]), t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]), r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]), r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int j = 0; j < 4; j++) {
        t[j] = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88), t[4 + j] = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd);
        t[8 + j] = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88), t[12 + j] = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
    }
    for (int j = 0; j < 4; j++) {
        r[j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0x88), r[8 + j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0xdd);
        r[4 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0x88), r[12 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0xdd);
    }
}

/** 16 rows x [16, 64] as right operands of products with x transposed: 2 tiles [16 pairs of the 64, 16 rows, 2]. */
void packTransposed(const bf16 *x, size_t stride, bf16 *out) {
    for (int c = 0; c < 2; c++) {
        __m512i r[16];
        for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_si512(x + i * stride + c * CHUNK);
        transpose(r);
        for (int i = 0; i < 16; i++) _mm512_store_si512(out + c * HALVES + i * CHUNK, r[i]);
    }
}

/** 32 rows of x [32, 64] as right operands: 4 tiles [16 pairs of rows, 16 of the 64, 2]. */
void packPairs(const bf16 *x, size_t stride, bf16 *out) {
    for (int d = 0; d < 4; d++)
        for (int p = 0; p < 16; p++) {
            __m512i lo = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(x + 2 * p * stride + d * TILE)));
            __m512i hi = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(x + (2 * p + 1) * stride + d * TILE)));
            _mm512_store_si512(out + d * HALVES + p * CHUNK, _mm512_or_si512(lo, _mm512_slli_epi32(hi, 16)));
        }
}

/** 32 rows of x [32, 64], transposed, as left operands: 4 tiles [16 of the 64, 32 rows]. */
void packColumns(const bf16 *x, size_t stride, bf16 *out) {
    for (int c = 0; c < 2; c++) {
        __m512i r[16], s[16];
        for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_si512(x + i * stride + c * CHUNK), s[i] = _mm512_loadu_si512(x + (i + 16) * stride + c * CHUNK);
        transpose(r), transpose(s);
        for (int i = 0; i < 16; i++) {
            bf16 *even = out + (2 * c + i / 8) * HALVES + (2 * i % 16) * CHUNK;
            _mm256_store_si256((__m256i *)even, _mm512_cvtepi32_epi16(r[i]));
            _mm256_store_si256((__m256i *)(even + 16), _mm512_cvtepi32_epi16(s[i]));
            _mm256_store_si256((__m256i *)(even + CHUNK), _mm512_cvtepi32_epi16(_mm512_srli_epi32(r[i], 16)));
            _mm256_store_si256((__m256i *)(even + CHUNK + 16), _mm512_cvtepi32_epi16(_mm512_srli_epi32(s[i], 16)));
        }
    }
}

/** 2 to the power of x, for bfloat16: relative error below 5e-6. */
inline __m512 exp2of(__m512 x) {
    __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), f = _mm512_sub_ps(x, n);
    __m512 p = _mm512_set1_ps(0.00966637f);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.05592198f)), p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.24022349f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.69312105f)), p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1));
    return _mm512_scalef_ps(p, n);
}

inline __m512i half(__m512 x) { return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(x)); }
inline __m512 widen16(const bf16 *x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)x)), 16)); }
inline float widen(bf16 x) {
    const uint32_t bits = (uint32_t)x << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}
/** Two rows as the pairs of a right operand. */
inline void storePair(bf16 *out, __m512 lo, __m512 hi) { _mm512_store_si512(out, _mm512_or_si512(half(lo), _mm512_slli_epi32(half(hi), 16))); }
/** 32 values of a row of a left operand. */
inline void storeRow(bf16 *out, __m512 first, __m512 second) { _mm512_store_si512(out, (__m512i)_mm512_cvtne2ps_pbh(second, first)); }
/** Which of the 16 queries from `query` on see the key. */
inline __mmask16 sees(const int *first, int query, int key) {
    return (__mmask16)(0xffffu << std::clamp(key - query, 0, 16)) & _mm512_cmple_epi32_mask(_mm512_loadu_si512(first + query), _mm512_set1_epi32(key));
}

/** Tiles [4][2] of float32 [16 of the 64, 16 queries] times `factor` of each query, as rows of 32 queries. */
void writeTransposed(const float *tiles, const float *factor, bf16 *out, size_t stride) {
    for (int q = 0; q < 2; q++)
        for (int d = 0; d < 4; d += 2) {
            __m512i a[16], b[16];
            __m512 f = factor ? _mm512_loadu_ps(factor + q * TILE) : _mm512_set1_ps(1);
            for (int i = 0; i < 16; i++) {
                a[i] = _mm512_castps_si512(_mm512_mul_ps(f, _mm512_load_ps(tiles + (d * 2 + q) * FLOATS + i * TILE)));
                b[i] = _mm512_castps_si512(_mm512_mul_ps(f, _mm512_load_ps(tiles + ((d + 1) * 2 + q) * FLOATS + i * TILE)));
            }
            transpose(a), transpose(b);
            for (int i = 0; i < 16; i++)
                _mm512_storeu_si512(out + (q * TILE + i) * stride + d * TILE, (__m512i)_mm512_cvtne2ps_pbh(_mm512_castsi512_ps(b[i]), _mm512_castsi512_ps(a[i])));
        }
}

/** One head of one sequence: `values` are the tiles of packColumns of all of v. */
void forwardHead(const bf16 *q, const bf16 *k, const bf16 *values, const int *first, bf16 *out, float *lse, int T, size_t strideQ, size_t strideK, float *scores, bf16 *probs) {
    const float c = LOG2E / std::sqrt((float)D);
    alignas(64) bf16 right[4 * HALVES];
    alignas(64) float sums[8 * FLOATS], factor[CHUNK];
    for (int q0 = 0; q0 < T; q0 += CHUNK) {
        packTransposed(q + q0 * strideQ, strideQ, right), packTransposed(q + (q0 + TILE) * strideQ, strideQ, right + 2 * HALVES);
        // keys before `from` are seen by no query, those from `open` to `q0` by all
        const int from = first[q0] / CHUNK * CHUNK, open = first[q0 + CHUNK - 1], n = q0 + CHUNK;
        for (int key = from; key < n; key += CHUNK) {
            clearSums();
            for (int d = 0; d < 2; d++)
                multiply(k + key * strideK + d * CHUNK, k + (key + TILE) * strideK + d * CHUNK, strideK * 2, right + d * HALVES, right + (2 + d) * HALVES);
            float *s = scores + key * CHUNK;
            storeSums(s, s + TILE, s + TILE * CHUNK, s + TILE * CHUNK + TILE, CHUNK * 4);
        }
        for (int t = 0; t < 2; t++) {
            __m512 most = _mm512_set1_ps(-INFINITY), total = _mm512_setzero_ps();
            for (int key = from; key < n; key++) {
                const __mmask16 seen = key >= open && key < q0 ? 0xffff : sees(first, q0 + t * TILE, key);
                most = _mm512_mask_max_ps(most, seen, most, _mm512_load_ps(scores + key * CHUNK + t * TILE));
            }
            const __m512 m = _mm512_mul_ps(most, _mm512_set1_ps(c));
            for (int key = from; key < n; key += 2) {
                __m512 a = exp2of(_mm512_fmsub_ps(_mm512_load_ps(scores + key * CHUNK + t * TILE), _mm512_set1_ps(c), m));
                __m512 b = exp2of(_mm512_fmsub_ps(_mm512_load_ps(scores + (key + 1) * CHUNK + t * TILE), _mm512_set1_ps(c), m));
                if (key < open || key >= q0) a = _mm512_maskz_mov_ps(sees(first, q0 + t * TILE, key), a), b = _mm512_maskz_mov_ps(sees(first, q0 + t * TILE, key + 1), b);
                total = _mm512_add_ps(total, _mm512_add_ps(a, b));
                storePair(probs + ((key / CHUNK) * 2 + t) * HALVES + (key % CHUNK) * TILE, a, b);
            }
            alignas(64) float most16[16], total16[16];
            _mm512_store_ps(most16, m), _mm512_store_ps(total16, total);
            for (int i = 0; i < 16; i++) lse[q0 + t * TILE + i] = most16[i] + std::log2(total16[i]);
            _mm512_store_ps(factor + t * TILE, _mm512_div_ps(_mm512_set1_ps(1), total));
        }
        for (int d = 0; d < 4; d += 2) {
            clearSums();
            for (int chunk = from / CHUNK; chunk < n / CHUNK; chunk++)
                multiply(values + (chunk * 4 + d) * HALVES, values + (chunk * 4 + d + 1) * HALVES, 64, probs + chunk * 2 * HALVES, probs + (chunk * 2 + 1) * HALVES);
            float *s = sums + d * 2 * FLOATS;
            storeSums(s, s + FLOATS, s + 2 * FLOATS, s + 3 * FLOATS);
        }
        writeTransposed(sums, factor, out + q0 * strideQ, strideQ);
    }
}

/** Operands of a block of 64 queries of one head. */
struct QueryBlock {
    alignas(64) bf16 queries[4][2 * HALVES], gradients[4][2 * HALVES]; // [16 queries]: packTransposed
    alignas(64) bf16 queryPairs[2][4 * HALVES], gradientPairs[2][4 * HALVES]; // [32 queries]: packPairs
    alignas(64) float lse[BLOCK], delta[BLOCK];
    alignas(64) float dq[2][8 * FLOATS]; // [32 queries][16 of the 64][16 queries]
    // with 64 keys: probabilities and gradients of scores [32 queries][16 keys], and the latter as right operands [16 queries][32 keys]
    alignas(64) bf16 p[2][4 * HALVES], ds[2][4 * HALVES], dsPairs[4][2 * HALVES];

    void load(const bf16 *q, const bf16 *out, const bf16 *gradient, const float *lses, size_t stride) {
        for (int t = 0; t < 4; t++) packTransposed(q + t * TILE * stride, stride, queries[t]), packTransposed(gradient + t * TILE * stride, stride, gradients[t]);
        for (int t = 0; t < 2; t++) packPairs(q + t * CHUNK * stride, stride, queryPairs[t]), packPairs(gradient + t * CHUNK * stride, stride, gradientPairs[t]);
        std::memcpy(lse, lses, sizeof lse);
        std::memset(dq, 0, sizeof dq);
        for (int i = 0; i < BLOCK; i++) {
            __m512 sum = _mm512_setzero_ps();
            for (int d = 0; d < D; d += CHUNK) sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_loadu_si512(out + i * stride + d), (__m512bh)_mm512_loadu_si512(gradient + i * stride + d));
            delta[i] = _mm512_reduce_add_ps(sum);
        }
    }

    /** Probabilities of the 64 keys from `k0` on and gradients of their scores, for the queries from `q0` on; `masked` where not all are seen. */
    void scores(const bf16 *k, const bf16 *v, size_t stride, const int *first, int q0, int k0, bool masked) {
        const __m512 c = _mm512_set1_ps(LOG2E / std::sqrt((float)D)), scale = _mm512_set1_ps(1 / std::sqrt((float)D));
        alignas(64) float s[CHUNK * CHUNK], dp[CHUNK * CHUNK];
        for (int qt = 0; qt < 4; qt += 2)
            for (int kt = 0; kt < 4; kt += 2) {
                clearSums();
                for (int d = 0; d < 2; d++)
                    multiply(k + kt * TILE * stride + d * CHUNK, k + (kt + 1) * TILE * stride + d * CHUNK, stride * 2, queries[qt] + d * HALVES, queries[qt + 1] + d * HALVES);
                storeSums(s, s + TILE, s + TILE * CHUNK, s + TILE * CHUNK + TILE, CHUNK * 4);
                clearSums();
                for (int d = 0; d < 2; d++)
                    multiply(v + kt * TILE * stride + d * CHUNK, v + (kt + 1) * TILE * stride + d * CHUNK, stride * 2, gradients[qt] + d * HALVES, gradients[qt + 1] + d * HALVES);
                storeSums(dp, dp + TILE, dp + TILE * CHUNK, dp + TILE * CHUNK + TILE, CHUNK * 4);
                const __m512 l0 = _mm512_load_ps(lse + qt * TILE), l1 = _mm512_load_ps(lse + (qt + 1) * TILE), e0 = _mm512_load_ps(delta + qt * TILE), e1 = _mm512_load_ps(delta + (qt + 1) * TILE);
                for (int key = 0; key < CHUNK; key += 2) {
                    __m512 g[2][2];
                    for (int i = 0; i < 2; i++) {
                        const float *sr = s + (key + i) * CHUNK, *dr = dp + (key + i) * CHUNK;
                        __m512 p0 = exp2of(_mm512_fmsub_ps(_mm512_load_ps(sr), c, l0)), p1 = exp2of(_mm512_fmsub_ps(_mm512_load_ps(sr + TILE), c, l1));
                        if (masked) {
                            const int query = q0 + qt * TILE, at = k0 + kt * TILE + key + i;
                            p0 = _mm512_maskz_mov_ps(sees(first, query, at), p0), p1 = _mm512_maskz_mov_ps(sees(first, query + TILE, at), p1);
                        }
                        g[0][i] = _mm512_mul_ps(_mm512_mul_ps(p0, scale), _mm512_sub_ps(_mm512_load_ps(dr), e0));
                        g[1][i] = _mm512_mul_ps(_mm512_mul_ps(p1, scale), _mm512_sub_ps(_mm512_load_ps(dr + TILE), e1));
                        const int row = (kt + (key + i) / TILE) * HALVES + (key + i) % TILE * CHUNK;
                        storeRow(p[qt / 2] + row, p0, p1), storeRow(ds[qt / 2] + row, g[0][i], g[1][i]);
                    }
                    for (int t = 0; t < 2; t++) storePair(dsPairs[qt + t] + kt / 2 * HALVES + key * TILE, g[t][0], g[t][1]);
                }
            }
    }
};

/** One key/value head of one sequence with its `group` query heads; `keys` are the tiles of packColumns of all of k, dk and dv float32 tiles [T / 16][4]. */
void backwardHead(const bf16 *q, const bf16 *k, const bf16 *v, const int *first, const bf16 *out, const float *lse, const bf16 *gradient, bf16 *dq, int T, int group, size_t strideQ, size_t strideK,
                  const bf16 *keys, float *dk, float *dv, QueryBlock *blocks) {
    std::memset(dk, 0, (size_t)T * D * 4), std::memset(dv, 0, (size_t)T * D * 4);
    for (int q0 = 0; q0 < T; q0 += BLOCK) {
        for (int h = 0; h < group; h++) blocks[h].load(q + q0 * strideQ + h * D, out + q0 * strideQ + h * D, gradient + q0 * strideQ + h * D, lse + (size_t)h * T + q0, strideQ);
        for (int k0 = first[q0] / BLOCK * BLOCK; k0 <= q0; k0 += BLOCK) {
            const bool masked = k0 == q0 || k0 < first[q0 + BLOCK - 1];
            for (int h = 0; h < group; h++) blocks[h].scores(k + k0 * strideK, v + k0 * strideK, strideK, first, q0, k0, masked);
            for (int kt = 0; kt < 4; kt += 2)
                for (int d = 0; d < 4; d += 2) {
                    const size_t first = ((k0 / TILE + kt) * 4 + d) * FLOATS, next = first + 4 * FLOATS;
                    loadSums(dv + first, dv + first + FLOATS, dv + next, dv + next + FLOATS);
                    for (int h = 0; h < group; h++)
                        for (int t = 0; t < 2; t++)
                            multiply(blocks[h].p[t] + kt * HALVES, blocks[h].p[t] + (kt + 1) * HALVES, 64, blocks[h].gradientPairs[t] + d * HALVES, blocks[h].gradientPairs[t] + (d + 1) * HALVES);
                    storeSums(dv + first, dv + first + FLOATS, dv + next, dv + next + FLOATS);
                    loadSums(dk + first, dk + first + FLOATS, dk + next, dk + next + FLOATS);
                    for (int h = 0; h < group; h++)
                        for (int t = 0; t < 2; t++)
                            multiply(blocks[h].ds[t] + kt * HALVES, blocks[h].ds[t] + (kt + 1) * HALVES, 64, blocks[h].queryPairs[t] + d * HALVES, blocks[h].queryPairs[t] + (d + 1) * HALVES);
                    storeSums(dk + first, dk + first + FLOATS, dk + next, dk + next + FLOATS);
                }
            for (int h = 0; h < group; h++)
                for (int t = 0; t < 2; t++)
                    for (int d = 0; d < 4; d += 2) {
                        float *s = blocks[h].dq[t] + d * 2 * FLOATS;
                        loadSums(s, s + FLOATS, s + 2 * FLOATS, s + 3 * FLOATS);
                        for (int chunk = 0; chunk < 2; chunk++) {
                            const bf16 *a = keys + ((k0 / CHUNK + chunk) * 4 + d) * HALVES;
                            multiply(a, a + HALVES, 64, blocks[h].dsPairs[2 * t] + chunk * HALVES, blocks[h].dsPairs[2 * t + 1] + chunk * HALVES);
                        }
                        storeSums(s, s + FLOATS, s + 2 * FLOATS, s + 3 * FLOATS);
                    }
        }
        for (int h = 0; h < group; h++)
            for (int t = 0; t < 2; t++) writeTransposed(blocks[h].dq[t], nullptr, dq + (q0 + t * CHUNK) * strideQ + h * D, strideQ);
    }
}

/** Float32 tiles [T / 16][4] as rows. */
void writeRows(const float *tiles, bf16 *out, int T, size_t stride) {
    for (int i = 0; i < T; i++)
        for (int d = 0; d < 4; d += 2) {
            const float *a = tiles + ((i / TILE) * 4 + d) * FLOATS + i % TILE * TILE;
            _mm512_storeu_si512(out + i * stride + d * TILE, (__m512i)_mm512_cvtne2ps_pbh(_mm512_load_ps(a + FLOATS), _mm512_load_ps(a)));
        }
}

} // namespace

extern "C" {

/** Whether the system lets this process use tiles. */
int available() {
    constexpr long REQUEST_PERMISSION = 0x1023, TILE_DATA = 18;
    return __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("avx512bf16") && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

/** out [B, T, heads, 64], lse [B, heads, T]: base-2 logarithm of the sum of the exponentials of each query's scores. */
void forward(const bf16 *q, const bf16 *k, const bf16 *v, const int *first, bf16 *out, float *lse, int B, int T, int heads, int kvHeads) {
    const size_t strideQ = heads * D, strideK = kvHeads * D;
    const int group = heads / kvHeads;
#pragma omp parallel
    {
        Tiles tiles;
        Buffer<bf16> values((size_t)T * D), probs((size_t)T * CHUNK);
        Buffer<float> scores((size_t)T * CHUNK);
#pragma omp for schedule(dynamic)
        for (int item = 0; item < B * kvHeads; item++) {
            const int b = item / kvHeads, g = item % kvHeads;
            const bf16 *k0 = k + (size_t)b * T * strideK + g * D, *v0 = v + (size_t)b * T * strideK + g * D;
            for (int t = 0; t < T; t += CHUNK) packColumns(v0 + t * strideK, strideK, values + t * D);
            for (int h = g * group; h < (g + 1) * group; h++) {
                const size_t at = (size_t)b * T * strideQ + h * D;
                forwardHead(q + at, k0, values, first + (size_t)b * T, out + at, lse + ((size_t)b * heads + h) * T, T, strideQ, strideK, scores, probs);
            }
        }
    }
}

/** Gradients of q, k and v for one of `out`. */
void backward(const bf16 *q, const bf16 *k, const bf16 *v, const int *first, const bf16 *out, const float *lse, const bf16 *gradient, bf16 *dq, bf16 *dk, bf16 *dv, int B, int T, int heads, int kvHeads) {
    const size_t strideQ = heads * D, strideK = kvHeads * D;
    const int group = heads / kvHeads;
#pragma omp parallel
    {
        Tiles tiles;
        Buffer<bf16> keys((size_t)T * D);
        Buffer<float> sumK((size_t)T * D), sumV((size_t)T * D);
        Buffer<QueryBlock> blocks(group);
#pragma omp for schedule(dynamic)
        for (int item = 0; item < B * kvHeads; item++) {
            const int b = item / kvHeads, g = item % kvHeads;
            const size_t atQ = (size_t)b * T * strideQ + g * group * D, atK = (size_t)b * T * strideK + g * D;
            for (int t = 0; t < T; t += CHUNK) packColumns(k + atK + t * strideK, strideK, keys + t * D);
            backwardHead(q + atQ, k + atK, v + atK, first + (size_t)b * T, out + atQ, lse + ((size_t)b * heads + g * group) * T, gradient + atQ, dq + atQ, T, group, strideQ, strideK, keys, sumK, sumV, blocks);
            writeRows(sumK, dk + atK, T, strideK), writeRows(sumV, dv + atK, T, strideK);
        }
    }
}

/** logits [n, V] become the gradients of the weighted cross entropies `losses` [n]; V is a multiple of 32. */
void crossEntropy(bf16 *logits, const int64_t *targets, const float *weights, float *losses, int n, int V) {
#pragma omp parallel
    {
        Buffer<float> powers(V);
        const __m512 c = _mm512_set1_ps(LOG2E);
#pragma omp for
        for (int i = 0; i < n; i++) {
            bf16 *row = logits + (size_t)i * V;
            const float target = widen(row[targets[i]]);
            __m512 most = _mm512_set1_ps(-INFINITY), total = _mm512_setzero_ps();
            for (int j = 0; j < V; j += TILE) most = _mm512_max_ps(most, widen16(row + j));
            const float m = _mm512_reduce_max_ps(most);
            const __m512 mc = _mm512_set1_ps(m * LOG2E);
            for (int j = 0; j < V; j += TILE) {
                const __m512 p = exp2of(_mm512_fmsub_ps(widen16(row + j), c, mc));
                total = _mm512_add_ps(total, p);
                _mm512_store_ps(powers + j, p);
            }
            const float sum = _mm512_reduce_add_ps(total), w = weights[i];
            losses[i] = w * (std::log(sum) + m - target);
            powers[targets[i]] -= sum;
            const __m512 f = _mm512_set1_ps(w / sum);
            for (int j = 0; j < V; j += CHUNK) storeRow(row + j, _mm512_mul_ps(f, _mm512_load_ps(powers + j)), _mm512_mul_ps(f, _mm512_load_ps(powers + j + TILE)));
        }
    }
}
}
