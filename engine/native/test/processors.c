/* Which kernels a processor may run: none that lacks one of the features that the compiler may use. */
#include <stdio.h>
#include "../step.h"

extern const Kernels kernels_plain;

/** From the psABI of x86-64 (levels 2 to 4) and the names of the kernels. Without SSE and SSE2, which all have. */
#if defined(__x86_64__)
#define V2_1C (1u << 0 | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23)
#define V3_1C (V2_1C | 1u << 12 | 1u << 22 | 1u << 26 | 1u << 28 | 1u << 29)
#define V3_7B (1u << 3 | 1u << 5 | 1u << 8)
#define V4_7B (V3_7B | 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31)
extern const Kernels kernels_avx2, kernels_avxvnni, kernels_avx512vnni;
static const Kernels *const ALL[] = {&kernels_plain, &kernels_avx2, &kernels_avxvnni, &kernels_avx512vnni};
static const Features LEVELS[] = {
    {.leaf1c = V2_1C, .extendedC = 1},
    {.leaf1c = V3_1C, .leaf7b = V3_7B, .extendedC = 1 | 1u << 5},
    {.leaf1c = V3_1C, .leaf7b = V3_7B, .leaf71a = 1u << 4, .extendedC = 1 | 1u << 5},
    {.leaf1c = V3_1C, .leaf7b = V4_7B, .leaf7c = 1u << 1 | 1u << 11, .extendedC = 1 | 1u << 5},
};
#else
extern const Kernels kernels_dotprod;
static const Kernels *const ALL[] = {&kernels_plain, &kernels_dotprod};
static const Features LEVELS[] = {{.dotProduct = 0}, {.dotProduct = 1}};
#endif

int main(void) {
  int numBits = 0;
  for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++) {
    int isBad = !kernels_run_on(ALL[i], &LEVELS[i]);
    for (size_t bit = 0; bit < 8 * sizeof(Features); bit++) {
      Features less = LEVELS[i];
      uint8_t *byte = (uint8_t *)&less + bit / 8;
      if (!(*byte >> bit % 8 & 1)) continue;
      *byte ^= 1 << bit % 8;
      isBad |= kernels_run_on(ALL[i], &less);
      numBits++;
    }
    if (isBad) return printf("%s runs without what it needs, or not with it\n", ALL[i]->name), 1;
  }
  printf("%zu kernels, %d features\n", sizeof ALL / sizeof *ALL, numBits);
  return 0;
}
