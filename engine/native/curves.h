/* Activations and limits, from the power alone. Included by products.h. */
#pragma once
#include "simd.h"

/** x / (1 + exp(-y)), with the exponential of a negative number only. */
ALWAYS v16f times_sigmoid(v16f x, v16f y) {
  const v16f e = power_f(-abs_f(y) * LOG2_E), one = splat_f(POWER_UNIT);
  return x * (select_f(y < 0, e, one) / (one + e));
}

/** SiLU, or the GELU with a hyperbolic tangent: x / 2 * (1 + tanh(z)) is x * sigmoid(2 z). */
ALWAYS v16f activated(v16f x, int isGelu) {
  return times_sigmoid(x, isGelu ? (x * x * x * 0.044715f + x) * 1.59576912f : x);
}

/** As activated, in place, for `n` numbers, a multiple of 16. */
ONCE void activate(float *x, int n, int isGelu) {
  for (int i = 0; i < n; i += 16) store_f(x + i, activated(load_f(x + i), isGelu));
}

/**
 * x becomes cap * tanh(x / cap), in place, for `n` numbers, a multiple of 16. Minus infinity stays: it is the score of
 * a slot that a row does not see.
 */
ONCE void limit(float *x, int n, float cap) {
  const v16f one = splat_f(POWER_UNIT);
  for (int i = 0; i < n; i += 16) {
    const v16f v = load_f(x + i), e = power_f(abs_f(v) * (-2 * LOG2_E / cap));
    const v16f size = (one - e) / (one + e) * cap;
    const v16f limited = as_f(as_i(size) | (as_i(v) & (int32_t)0x80000000));
    store_f(x + i, select_f(v > -__builtin_inff(), limited, v));
  }
}
