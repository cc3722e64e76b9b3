/** Calculates the change of a share of right answers over the same questions, with its interval. PURE. */

/** Counts of questions: right only before, right only after, all, and right before. */
export interface Paired {
  readonly lost: number;
  readonly gained: number;
  readonly n: number;
  readonly rightBefore: number;
}

/** Quantile of the normal distribution for a 95% interval. */
const Z = 1.959964;

/**
 * Change of the share of right answers, -1..1, with its 95% interval.
 * Method 10 of Newcombe, Statistics in Medicine 17, 1998, p. 2635.
 */
export function pairedChange({ lost, gained, n, rightBefore }: Paired): {
  change: number;
  least: number;
  most: number;
} {
  if (n === 0) return { change: 0, least: -1, most: 1 };
  const both = rightBefore - lost;
  const neither = n - both - lost - gained;
  const [after, before] = [(both + gained) / n, rightBefore / n];
  const [leastAfter, mostAfter] = shareInterval(after, n);
  const [leastBefore, mostBefore] = shareInterval(before, n);
  const phi = correlation(both, lost, gained, neither);
  const half = (a: number, b: number): number => Math.sqrt(Math.max(0, a * a - 2 * phi * a * b + b * b));
  const change = after - before;
  return {
    change,
    least: change - half(after - leastAfter, mostBefore - before),
    most: change + half(mostAfter - after, before - leastBefore),
  };
}

/** 95% interval of a share of n (Wilson, 1927). */
function shareInterval(share: number, n: number): [least: number, most: number] {
  const middle = share + (Z * Z) / (2 * n);
  const half = Z * Math.sqrt((share * (1 - share)) / n + (Z * Z) / (4 * n * n));
  return [(middle - half) / (1 + (Z * Z) / n), (middle + half) / (1 + (Z * Z) / n)];
}

/** Correlation of right before and right after, corrected for continuity. 0 if one of them is always or never true. */
function correlation(both: number, lost: number, gained: number, neither: number): number {
  const product = (both + lost) * (gained + neither) * (both + gained) * (lost + neither);
  if (product === 0) return 0;
  const excess = both * neither - lost * gained;
  const corrected = excess > 0 ? Math.max(0, excess - (both + lost + gained + neither) / 2) : excess;
  return corrected / Math.sqrt(product);
}
