/* See processor.h. Does not use __builtin_cpu_supports, which answers 0 in programs of zig 0.17. */
#include "processor.h"
#if defined(__x86_64__)
#include <cpuid.h>

/** Registers that the system must save: AVX and AVX-512. Bits of leaf 1 and 7 that say so. */
enum { YMM = 6, ZMM = 0xe6, OSXSAVE = 1 << 27, AVX = 1 << 28, AVX512F = 1 << 16 };

Features processor_features(void) {
  Features f = {0};
  unsigned a, b, c, d, low = 0, high = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) f.leaf1c = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    f.leaf7b = b;
    f.leaf7c = c;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) f.leaf71a = a;
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) f.extendedC = c;
  if (f.leaf1c & OSXSAVE) __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  // All kernels with these registers need these bits.
  if ((low & YMM) != YMM) f.leaf1c &= ~(uint32_t)AVX;
  if ((low & ZMM) != ZMM) f.leaf7b &= ~(uint32_t)AVX512F;
  return f;
}
#elif defined(__aarch64__)
#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(_WIN32)
#include <windows.h>
#endif

Features processor_features(void) {
#if defined(__linux__)
  return (Features){.dotProduct = getauxval(AT_HWCAP) >> 20 & 1};
#elif defined(_WIN32)
  return (Features){.dotProduct = IsProcessorFeaturePresent(43 /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE */) != 0};
#else
  // All Macs with this processor.
  return (Features){.dotProduct = 1};
#endif
}
#endif
