/** docs/strategies.md: figures come from the results, notes stay. */
import { expect, test } from 'vitest';
import type { Machine } from '../../bench/performanceTargets.ts';
import { figure } from '../../bench/spread.ts';
import { type StrategiesResults, strategiesDoc } from '../../bench/strategies/strategiesText.ts';

const machine: Machine = {
  cpu: 'Some CPU',
  processors: 2,
  memoryBytes: 24 * 2 ** 30,
  platform: 'linux-x64',
  node: 'v24.0.0',
  loadBefore: 0.1,
  loadAfter: 2,
  date: '2026-01-02T03:04:05.678Z',
};
const SECONDS = { none: 4, dynamic: 1, static: 2, window: 0.5 };
const RESULTS: StrategiesResults = {
  strategies: {
    machine,
    result: {
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
    },
  },
  tiers: {
    machine,
    result: {
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
            tier: 'disk',
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
            { tier: 'pool', codecs: ['int4-kivi'], ms: 110, found: 4096 },
          ],
        },
      ],
    },
  },
  heads: {
    machine,
    result: {
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
    },
  },
};

test('tables and charts are those of the results', () => {
  const { text, charts } = strategiesDoc(RESULTS);
  expect(text).toContain(
    '| strategies | Some CPU, 2 processors, 24 GiB, linux-x64, Node v24.0.0, no GPU | 2 | 2026-01-02 03:04 |',
  );
  expect(text).toContain('| none | 54.3 | 0.0098 | 6.33 |');
  // Of turns of 0.5 s and 1 s, 32 tokens each.
  expect(text).toContain('| window | 0.750 | 0 | 48.0 | 2.00 |');
  // By tier, and by what the rows have been through; P95 of three is the largest.
  expect(text).toContain('| disk | 3 | 75.0% | 550 (550–1100) | 1100 | 1/20.0 | 1/10.0 |');
  expect(text).toContain('| store, int4-kivi | 1 | 100.0% | 200 | 200 | 1/10.0 | 1/10.0 |');
  expect(text).toContain('| store, int8 | 1 | 100.0% | 100 | 100 | 1/20.0 | 1/20.0 |');
  expect(text).toContain('| all | 3 | 100.0% | 110 (100–200) | 200 | 1/18.2 | 1/10.0 |');
  expect(text).toContain('The cache took 255 MB of memory at most.');
  expect(text).toContain("no disk is read here, and elsewhere the time for a file's 27.0 MB comes on top");
  expect(text).toContain('| 1, one for all | 7.00 M | 682 | 1280 | 2.00 (1.00–3.00) | 1000 |');
  const files = Object.keys(charts);
  expect(files).toEqual(['strategies-time.svg', 'strategies-throughput.svg', 'strategies-memory.svg']);
  for (const file of files) expect(text).toContain(`](strategies/${file})`);
  for (const svg of Object.values(charts)) expect(svg).toContain('turn 2');
});

test('notes are taken over, and one without a place is an error', () => {
  const written = strategiesDoc(RESULTS).text.replace(
    '<!-- notes:tiers -->\n',
    '<!-- notes:tiers -->\nMostly $$& the disk.\n',
  );
  const again = strategiesDoc(RESULTS, written).text;
  expect(again).toBe(written);
  expect(() => strategiesDoc(RESULTS, `${written}<!-- notes:gone -->\nA text.\n<!-- /notes -->\n`)).toThrow(
    'notes without a place: gone; the places are summary, strategies, tiers, heads',
  );
});
