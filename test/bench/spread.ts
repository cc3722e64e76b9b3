/** Summarizes repeated measurements of a benchmark. Pure. */

export interface Figure {
  median: number;
  least: number;
  most: number;
  /** In the order of measurement. */
  samples: number[];
}

/** The middle value, or the mean of the two middle values; NaN for no values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/** The smallest value such that at least `share` of the values do not exceed it; NaN for no values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

export function figure(samples: readonly number[]): Figure {
  return { median: median(samples), least: Math.min(...samples), most: Math.max(...samples), samples: [...samples] };
}

/** Three significant digits, without exponent. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const digits = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(digits, 4));
}

/** Formats a figure as "31.4 (30.9–33.0)", or as the median alone if there is one sample. */
export function withSpread({ median, least, most, samples }: Figure): string {
  return samples.length > 1 ? `${short(median)} (${short(least)}–${short(most)})` : short(median);
}

export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}
