#!/usr/bin/env bash
# Guess: __builtin_cpu_supports("avx2") asks the processor, as with gcc and clang, so a library can choose its kernels.
# What happens: in a program that zig has compiled it answers 0, also after __builtin_cpu_init(), while cpuid says that
#   the processor has the instructions. There is no error and no warning.
# Seen: 2026-11-28, ziglang 0.17.1 (PyPI), x86_64-linux-gnu.2.28, on a processor with AVX2: "builtin 0, cpuid 1".
# Why it matters: a library that is compiled with zig runs its slowest kernels on every machine, and all tests pass.
set -euo pipefail
[ "$(uname -sm)" = 'Linux x86_64' ] || { echo 'This needs Linux on x86-64.'; exit 0; }
grep -q avx2 /proc/cpuinfo || { echo 'This needs a processor with AVX2.'; exit 0; }
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check ziglang==0.17.1
cat > supports.c <<'C'
#include <cpuid.h>
#include <stdio.h>

int main(void) {
  unsigned a, b = 0, c, d;
  __builtin_cpu_init();
  __get_cpuid_count(7, 0, &a, &b, &c, &d);
  printf("builtin %d, cpuid %d\n", __builtin_cpu_supports("avx2") != 0, b >> 5 & 1);
}
C
python/bin/python -m ziglang cc -target x86_64-linux-gnu.2.28 supports.c -o supports
seen="$(./supports)"
echo "$seen"
[ "$seen" = 'builtin 0, cpuid 1' ] || { echo 'zig has changed.'; exit 1; }
echo 'as expected'
