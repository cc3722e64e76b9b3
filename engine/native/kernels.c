/* Chooses the kernels for the processor, and owns the buffers of steps. */
#include <stdlib.h>
#include <string.h>
#include "step.h"

extern const Kernels kernels_plain;
#if defined(__x86_64__)
#include <cpuid.h>
extern const Kernels kernels_avx2, kernels_avxvnni, kernels_avx512vnni;
#elif defined(__aarch64__)
extern const Kernels kernels_dotprod;
#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(_WIN32)
#include <windows.h>
#endif
#endif

#if defined(__x86_64__)
enum { YMM = 6, ZMM = 0xe6 };

static unsigned enabled_registers(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/** Does not use __builtin_cpu_supports, which answers 0 in programs of zig 0.17. */
static int can_run(const Kernels *kernels) {
  if (kernels == &kernels_plain) return 1;
  unsigned a, b, c, d, a1 = 0, b1, c1, d1;
  const unsigned registers = enabled_registers();
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  const int fma = c >> 12 & 1;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (registers & YMM) != YMM || !(b >> 5 & 1) || !fma) return 0;
  if (kernels == &kernels_avx2) return 1;
  if (kernels == &kernels_avxvnni) return __get_cpuid_count(7, 1, &a1, &b1, &c1, &d1) && (a1 >> 4 & 1);
  const unsigned foundation = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
  return (registers & ZMM) == ZMM && (b & foundation) == foundation && (c >> 11 & 1) && (c >> 1 & 1);
}
static const Kernels *const ALL[] = {&kernels_avx512vnni, &kernels_avxvnni, &kernels_avx2, &kernels_plain};
#elif defined(__aarch64__)
static int can_run(const Kernels *kernels) {
  if (kernels == &kernels_plain) return 1;
#if defined(__linux__)
  return getauxval(AT_HWCAP) >> 20 & 1;
#elif defined(_WIN32)
  return IsProcessorFeaturePresent(43 /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE */);
#else
  return 1;
#endif
}
static const Kernels *const ALL[] = {&kernels_dotprod, &kernels_plain};
#endif

const Kernels *kernels_named(const char *name) {
  for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
    if (!strcmp(ALL[i]->name, name)) return can_run(ALL[i]) ? ALL[i] : 0;
  return 0;
}

struct Workspace {
  int count;
  struct {
    void *data, *base;
    size_t size;
  } buffers[];
};

enum { SHARED_BUFFERS = 16 };

Workspace *workspace_open(int numThreads) {
  const int count = SHARED_BUFFERS + numThreads;
  Workspace *space = calloc(1, sizeof *space + count * sizeof space->buffers[0]);
  if (space) space->count = count;
  return space;
}

void workspace_close(Workspace *space) {
  if (!space) return;
  for (int i = 0; i < space->count; i++) free(space->buffers[i].base);
  free(space);
}

void *workspace_get(Workspace *space, int slot, size_t size) {
  if (slot >= space->count) return 0;
  if (space->buffers[slot].size >= size && space->buffers[slot].base) return space->buffers[slot].data;
  free(space->buffers[slot].base);
  // 64 bytes more on both sides: vectors may begin anywhere, and whole vectors are read at the end.
  char *base = calloc(1, size + 128);
  space->buffers[slot].base = base;
  space->buffers[slot].size = base ? size : 0;
  space->buffers[slot].data = base ? (void *)(((uintptr_t)base + 63) / 64 * 64) : 0;
  return space->buffers[slot].data;
}
