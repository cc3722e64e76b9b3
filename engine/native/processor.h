/* What kernels need of the processor. Included by step.c for what the compiler may use there. */
#pragma once
#include <stdint.h>

/** Bits of cpuid, named by leaf and register. On arm64 only dotProduct. */
typedef struct {
  uint32_t leaf1c, leaf7b, leaf7c, leaf71a, extendedC;
  uint32_t dotProduct;
} Features;

/** 1 if the macro is defined as 1, else 0. */
#define SECOND2(a, b, ...) b
#define SECOND(...) SECOND2(__VA_ARGS__)
#define DEFINED_1 ~,
#define USES2(x) SECOND(DEFINED_##x 1u, 0u, )
#define USES(x) USES2(x)

/** Everything that the compiler may use in the file that includes this. Other processors define some of the names. */
#if defined(__x86_64__)
#define NEEDS                                                                                                \
  {.leaf1c = USES(__SSE3__) | USES(__SSSE3__) << 9 | USES(__FMA__) << 12 |                                   \
             USES(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16) << 13 | USES(__SSE4_1__) << 19 |                      \
             USES(__SSE4_2__) << 20 | USES(__MOVBE__) << 22 | USES(__POPCNT__) << 23 |                       \
             USES(__XSAVE__) << 26 | USES(__AVX__) << 28 | USES(__F16C__) << 29,                             \
   .leaf7b = USES(__BMI__) << 3 | USES(__AVX2__) << 5 | USES(__BMI2__) << 8 | USES(__AVX512F__) << 16 |      \
             USES(__AVX512DQ__) << 17 | USES(__AVX512CD__) << 28 | USES(__AVX512BW__) << 30 |                \
             USES(__AVX512VL__) << 31,                                                                       \
   .leaf7c = USES(__AVX512VBMI__) << 1 | USES(__AVX512VNNI__) << 11,                                         \
   .leaf71a = USES(__AVXVNNI__) << 4,                                                                        \
   .extendedC = USES(__LAHF_SAHF__) | USES(__LZCNT__) << 5}
#else
#define NEEDS {.dotProduct = USES(__ARM_FEATURE_DOTPROD)}
#endif

/** Those of this processor that the system lets programs use. */
Features processor_features(void);
