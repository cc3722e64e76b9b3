import { expect, test } from 'vitest';
import { parseSize } from './bandwidth.ts';
import { figure, median, short, table, withSpread } from './spread.ts';
import { axis, barChart } from './svgPlot.ts';
import { scanModule, TURN_BYTES, WasmScan } from './wasmScan.ts';

test('the median is the middle value or the mean of the two middle values', () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 3])).toBe(2.5);
  expect(median([])).toBeNaN();
  expect(figure([5, 1, 9])).toEqual({ median: 5, least: 1, most: 9, samples: [5, 1, 9] });
});

test('figures have three digits, and a spread if there are several samples', () => {
  expect([1234.5, 31.44, 0.03779, 0, Number.NaN].map(short)).toEqual(['1235', '31.4', '0.0378', '0', '–']);
  expect(withSpread(figure([31.44]))).toBe('31.4');
  expect(withSpread(figure([30, 31.44, 33]))).toBe('31.4 (30.0–33.0)');
  expect(table(['a', 'b'], [['x', 1]])).toBe('| a | b |\n| --- | ---: |\n| x | 1 |');
});

test.each([
  [10, { end: 10, step: 2 }],
  [0.7, { end: 0.8, step: 0.2 }],
  [6100, { end: 8000, step: 2000 }],
  [0, { end: 1, step: 1 }],
])('an axis to %d ends at a round number at or above it', (top, expected) => {
  const { end, step } = axis(top);
  expect(end).toBeCloseTo(expected.end);
  expect(step).toBeCloseTo(expected.step);
});

test('a chart has a proportional bar for each value and a whisker for each spread', () => {
  const svg = barChart({
    title: 'a < b',
    unit: 'ms',
    groups: ['x', `${'long '.repeat(20)}name`],
    series: [
      { name: 'one', bars: [{ value: 5 }, { value: 10, least: 8, most: 10 }] },
      { name: 'two', bars: [null, { value: 2.5 }] },
    ],
  });
  expect(svg).toContain('a &lt; b');
  const heights = [...svg.matchAll(/<rect [^>]*width="(?!10")[^"]*" height="([\d.]+)"/g)].map(([, height]) =>
    Number(height),
  );
  expect(heights).toHaveLength(3);
  expect(heights[1]! / heights[0]!).toBeCloseTo(2, 1);
  expect(heights[2]! / heights[0]!).toBeCloseTo(0.5, 1);
  expect([...svg.matchAll(/stroke-width="1.5"/g)]).toHaveLength(1);
  const lines = [...svg.matchAll(/>((?:long|name)[^<]*)</g)].map(([, line]) => line);
  expect(lines.length).toBeGreaterThan(1);
  expect(lines.join(' ')).toBe(`${'long '.repeat(20)}name`);
  expect(svg).not.toMatch(/NaN|undefined|null/);
});

test('cache sizes are parsed in the format of the system', () => {
  expect(['32768K', '1M\n', '64', 'x'].map(parseSize)).toEqual([32 * 2 ** 20, 2 ** 20, 64, Number.NaN]);
});

test('a scan adds up every word between its bounds', () => {
  const pages = 2;
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const words = new BigInt64Array(memory.buffer);
  for (let i = 0; i < words.length; i++) words[i] = BigInt(i * i) - 5n;
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(scanModule(pages)), { e: { m: memory } });
  const scan = exports.scan as (from: number, to: number) => bigint;
  for (const [from, to] of [
    [0, 2 * 65_536],
    [TURN_BYTES, 7 * TURN_BYTES],
    [65_536, 65_536 + TURN_BYTES],
  ] as const) {
    expect(scan(from, to)).toBe(words.subarray(from / 8, to / 8).reduce((a, b) => a + b, 0n));
  }
});

test('threads scan all of their memory several times', async () => {
  const scan = new WasmScan(10 * 65_536, 3);
  await scan.ready();
  expect(scan.bytes).toBe(12 * 65_536);
  for (let i = 0; i < 20; i++)
    expect(scan.scan()).toBe(BigInt.asIntN(64, 0x0101010101010101n * BigInt(scan.bytes / 8)));
  await scan.close();
});
