/** Checks the tables and charts of the suites `strategies`, `tiers` and `heads` on small results. */
import { expect, test } from 'vitest';
import { headsReport } from './headsBench.ts';
import { figure } from './spread.ts';
import type { StrategiesBench } from './strategies/strategiesBench.ts';
import { strategiesCharts, strategiesCsv, strategiesReport } from './strategies/strategiesReport.ts';
import { tiersReport } from './tiers/tiersReport.ts';

const SECONDS = { none: 4, dynamic: 1, static: 2, window: 0.5 };
const STRATEGIES: StrategiesBench = {
  model: 'built-in',
  threads: 2,
  contextTokens: 2048,
  records: Object.entries(SECONDS).flatMap(([strategy, seconds]) =>
    [0, 1].map((turn) => ({
      strategy,
      scenario: 'shop',
      sample: 0,
      turn,
      contextTokens: 100 * (turn + 1),
      tokens: 32,
      seconds: seconds * (turn + 1),
      keptBytes: 0,
      peakBytes: 1e6 * (turn + 1),
    })),
  ),
};

test("strategies: means over turns of 0.5 s and 1 s with 32 tokens each, with the study's figures", () => {
  const text = strategiesReport(STRATEGIES);
  expect(text).toContain('| window | 0.750 | 0 | 48.0 | 2.00 |');
  expect(text).toContain('| none | 54.3 | 0.0098 | 6.33 |');
  const charts = strategiesCharts(STRATEGIES);
  expect(Object.keys(charts)).toEqual(['strategies-time.svg', 'strategies-throughput.svg', 'strategies-memory.svg']);
  for (const svg of Object.values(charts)) expect(svg).toContain('turn 2');
  expect(strategiesCsv(STRATEGIES.records).split('\n')).toHaveLength(1 + STRATEGIES.records.length + 1);
});

test('tiers: figures by tier and by codec; the P95 of three values is the largest', () => {
  const text = tiersReport({
    model: 'qwen2.5-0.5b',
    threads: 2,
    numFiles: 40,
    fileTokens: 4096,
    maxBytes: 256e6,
    fileBytes: 27e6,
    scenes: [
      {
        setting: null,
        peakBytes: 255e6,
        diskBytes: 1.07e9,
        anew: figure([10_000, 12_000]),
        written: figure([100]),
        revisits: [550, 550, 1100].map((ms, i) => ({
          tier: 'disk' as const,
          codecs: ['int8'],
          ms,
          found: i === 0 ? 1024 : 4096,
        })),
      },
      {
        setting: 'int4-kivi',
        peakBytes: 254e6,
        diskBytes: 1.07e9,
        anew: figure([2000]),
        written: figure([100]),
        revisits: [
          { tier: 'store', codecs: ['int4-kivi'], ms: 200, found: 4096 },
          { tier: 'store', codecs: ['int8'], ms: 100, found: 4096 },
          { tier: 'disk', codecs: ['int4-kivi'], ms: 110, found: 4096 },
        ],
      },
    ],
  });
  expect(text).toContain('| disk | 3 | 75.0% | 550 (550–1100) | 1100 | 1/20.0 | 1/10.0 |');
  expect(text).toContain('| store, int4-kivi | 1 | 100.0% | 200 | 200 | 1/10.0 | 1/10.0 |');
  expect(text).toContain('| store, int8 | 1 | 100.0% | 100 | 100 | 1/20.0 | 1/20.0 |');
  expect(text).toContain('| all | 3 | 100.0% | 110 (100–200) | 200 | 1/18.2 | 1/10.0 |');
  expect(text).toContain('The cache took 255 MB of memory at most.');
});

test('heads: one line for each number of KV heads', () => {
  const text = headsReport({
    threads: 2,
    queryHeads: 4,
    models: [4, 1].map((kvHeads) => ({
      kvHeads,
      parameters: 7e6,
      kvBytes: 682 * kvHeads,
      float16Bytes: 1280 * kvHeads,
      decode: [{ context: 512, ms: figure([kvHeads, kvHeads + 2, kvHeads + 1]) }],
      prefill: [{ context: 512, tokensPerSecond: figure([1000 / kvHeads]) }],
    })),
  });
  expect(text).toContain('| 1, one for all | 7.00 M | 682 | 1280 | 2.00 (1.00–3.00) | 1000 |');
});
