/** The document of the measured figures: what is judged, what is kept by hand, what is left out. */
import { describe, expect, test } from 'vitest';
import type { Run } from '../../bench/mixed/mixedBench.ts';
import type { PeersResult, Sample } from '../../bench/peers/peersBench.ts';
import { type Figures, SIZES } from '../../bench/peers/workload.ts';
import { type EngineResult, type Machine, type Target, targets } from '../../bench/performanceTargets.ts';
import { notesOf } from '../../bench/docNotes.ts';
import { type Measured, nested, performanceDoc } from '../../bench/performanceText.ts';
import type { SoakBench } from '../../bench/soak/soakBench.ts';
import { figure } from '../../bench/spread.ts';

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

function peers(figures: { [participant: string]: Figures[] }): PeersResult {
  const participants = Object.fromEntries(
    Object.keys(figures).map((id) => [id, { label: `Label of ${id}`, name: id, modelBytes: 5e8, settings: {} }]),
  );
  const samples = Object.entries(figures).flatMap(([participant, rounds]) =>
    rounds.map((of, round): Sample => ({ participant, scene: 'small', round, figures: of, firstTokens: [1] })),
  );
  return { shape: 'qwen2.5-0.5b', threads: 2, sizes: SIZES, participants, samples };
}

const PEERS = peers({
  kvasir: [
    { decode512: 10, prompt512: 900, afterEdit: 100 },
    { decode512: 12, prompt512: 900, afterEdit: 100 },
    { decode512: 10, prompt512: 900 },
  ],
  'llama-q8': [
    { decode512: 19, prompt512: 450, afterEdit: 299 },
    { decode512: 18, prompt512: 300, afterEdit: 299 },
    { decode512: 20, prompt512: 360 },
  ],
});

const ENGINE: EngineResult = {
  shape: 'qwen2.5-0.5b',
  precision: 'int8',
  threads: 2,
  seed: 1,
  parameters: 494e6,
  weightBytesPerStep: 5e8,
  scanBytes: 2 ** 28,
  results: [
    {
      group: 'decode',
      key: { context: 512 },
      figures: {
        ms: figure([20, 21, 22]),
        outsideMs: figure([0.4]),
        allocatedKb: figure([1400]),
        logitsKb: figure([1307.7]),
        poolSlots: figure([768]),
      },
    },
    {
      group: 'questions',
      key: { tokens: 8192 },
      figures: { first: figure([40_000]), second: figure([500]), edited: figure([20_000]) },
    },
    {
      group: 'speculation',
      key: { text: 'random', context: 1024, answer: 160 },
      figures: {
        plainMs: figure([30]),
        draftedMs: figure([31]),
        gain: figure([0.96, 0.97, 0.99]),
        tokensPerStep: figure([1]),
        draftedTokens: figure([0]),
        acceptedTokens: figure([0]),
      },
    },
  ],
  profiles: [
    {
      name: 'one token, context 512',
      steps: 8,
      callMs: 40,
      runMs: 38.5,
      operatorsMs: 30,
      rows: [
        { part: 'linear: head', op: 'MatMul', shape: '1×8', ms: 5.25, count: 1 },
        { part: 'norms', op: 'Norm', shape: '1×8', ms: 24.75, count: 49 },
      ],
    },
  ],
  shares: { bandwidth: 30, weightsMs: 16, step: 0.8, linear: 0.899 },
};

const find = (of: readonly Target[], group: string, what: string): Target => {
  const found = of.filter((target) => target.group === group && target.what === what);
  expect(found, `${group}, ${what}`).toHaveLength(1);
  return found[0]!;
};

describe('what is judged', () => {
  test('ratios are of medians with the range over the rounds, and the bound is that of the processor', () => {
    const [other, amx] = [targets({ peers: PEERS }), targets({ peers: PEERS }, true)];
    // Medians 10 and 19; round by round 1.9, 1.5 and 2.
    expect(find(other, 'llama-decode', 'at 0.5k')).toMatchObject({
      measured: '1.90x (1.50–2.00)',
      met: false,
      required: { amx: '≥ 1.6x', other: '≥ 2.2x' },
    });
    expect(find(amx, 'llama-decode', 'at 0.5k').met).toBe(true);
    // More tokens per second are better.
    expect(find(other, 'llama-prefill', '512 tokens at 0')).toMatchObject({ measured: '2.50x (2.00–3.00)', met: true });
    expect(other.filter(({ group, met }) => group === 'questions' && met === false)).toHaveLength(1);
  });

  test('what no result has is not measured, and nothing is judged of it', () => {
    for (const target of targets({}))
      expect([target.measured, target.met], `${target.group}, ${target.what}`).toEqual([null, null]);
    const some = targets({ peers: PEERS });
    expect(find(some, 'llama-decode', 'at 8k')).toMatchObject({ measured: null, met: null });
    expect(some.filter(({ group }) => group.startsWith('openvino')).every(({ met }) => met === null)).toBe(true);
  });

  test('shares, questions, drafts and garbage come from the engine alone', () => {
    const all = targets({ engine: ENGINE });
    expect(find(all, 'bandwidth', 'linear layers')).toMatchObject({ measured: '89.9%', met: false });
    expect(find(all, 'bandwidth', 'the whole step')).toMatchObject({ measured: '80.0%', met: true });
    expect(find(all, 'questions', 'first token of a second question, sooner than of the first')).toMatchObject({
      measured: '80.0x',
      met: true,
    });
    expect(find(all, 'speculation', 'random text')).toMatchObject({ measured: '0.970x (0.960–0.990)', met: true });
    // 151,936 logits of 4 bytes are 607.7 kB.
    expect(find(all, 'step', 'garbage of one token beside the logits, kB, at most')).toMatchObject({
      measured: '92.3',
      met: true,
    });
    expect(
      find(all, 'step', "one token's feeds and outputs across the border into native code, ms (profiled), at most"),
    ).toMatchObject({ measured: '1.50', met: false });
  });

  test('4-bit weights are compared with each other, and their prefill is only reported', () => {
    const four = peers({
      'kvasir-int4': [{ decode512: 10, prompt512: 200, chunk2k: 100 }],
      'llama-q4': [{ decode512: 13, prompt512: 100, chunk2k: 200 }],
    });
    const all = targets({ peers: four });
    expect(find(all, 'int4', 'decoding at 0.5k')).toMatchObject({ measured: '1.30x', met: true });
    expect(find(all, 'int4', 'prefill of 512 tokens at 0, behind 2k, behind 7.7k')).toMatchObject({
      measured: '2.00x, 0.500x, –',
      met: null,
      required: { amx: '', other: '' },
    });
  });

  test('a class that waits longer than it does one by one starves, however long others wait there', () => {
    const run = (scene: Run['scene'], way: string, makespanMs: number, waits: { [priority: string]: number }): Run => ({
      scene,
      way,
      round: 0,
      makespanMs,
      busyMs: makespanMs,
      records: Object.entries(waits).map(([priority, ms]) => ({
        id: priority,
        priority: priority as 'chat',
        due: 0,
        tokens: [ms, ms + 10],
        ended: ms + 10,
        unseen: false,
      })),
    });
    const runs = [
      run('rush', 'continuous', 1000, { completion: 200, summary: 900 }),
      run('rush', 'one by one', 2600, { completion: 2000, summary: 950 }),
      run('live', 'alone', 1, { completion: 90 }),
      run('live', 'with chat and summaries', 1, { completion: 191 }),
    ];
    const mixed = {
      model: 'tiny',
      threads: 2,
      parameters: 1,
      contextTokens: 1,
      seed: 1,
      rush: 50,
      speed: 2,
      batchSize: 8,
      batchTimeoutMs: 100,
      counts: {},
      promptTokens: 1,
      runs,
    } as const;
    const starves = 'no class starves in the rush: longest waits for a first token';
    const all = targets({ mixed: { ...mixed, runs: [...runs] } });
    expect(find(all, 'mixed', 'throughput of the rush, over one by one')).toMatchObject({
      measured: '2.60x',
      met: true,
    });
    expect(find(all, 'mixed', 'P95 of a completion with chat and summaries running, over alone')).toMatchObject({
      measured: '2.01x',
      met: false,
    });
    expect(find(all, 'mixed', starves)).toMatchObject({
      measured: 'completion 0.200 s, summary 0.900 s',
      met: true,
      required: { other: "≤ the same class's one by one: completion 2.00 s, summary 0.950 s" },
    });
    runs[0] = run('rush', 'continuous', 1000, { completion: 200, summary: 951 });
    expect(find(targets({ mixed: { ...mixed, runs: [...runs] } }), 'mixed', starves).met).toBe(false);
  });

  test('of long random runs the worst counts', () => {
    const one = (name: string, evictions: number, growthPer1000: number): SoakBench['runs'][number] => ({
      name,
      growthPer1000,
      seconds: 1,
      result: {
        numRequests: 5000,
        steps: 1,
        finished: 1,
        aborted: 0,
        failed: 0,
        tokensCompared: 10_000,
        noise: 0,
        tokensDiffering: 1,
        events: { evictions, preemptions: 300, promotions: 0, demotions: 0 },
        samples: [{ ended: 1, bytes: 1e8, heapBytes: 1 }],
      },
    });
    const all = targets({
      soak: {
        seed: 1,
        runs: [one('fake runner', 7, 1.2e6), one('real graph, int8', 250, 1000), one('real graph, float32', 199, 1000)],
      },
    });
    expect(all.filter(({ group }) => group === 'soak').map(({ measured, met }) => [measured, met])).toEqual([
      ['fake runner: 5000; real graph, int8: 5000; real graph, float32: 5000', true],
      ['199 or more', false],
      ['0.0100%', true],
      ['1.20', false],
    ]);
  });
});

describe('the document', () => {
  const measured: Measured = { engine: { result: ENGINE, machine }, peers: { result: PEERS, machine } };

  test('has the machine, the targets and the tables, and a chart for each picture', () => {
    const { text, charts, withoutNote } = performanceDoc(measured);
    expect(text).not.toMatch(/NaN|undefined|null|Infinity/);
    expect(text).toContain('Some CPU, 2 processors, 24 GiB, linux-x64, Node v24.0.0; no GPU is used.');
    expect(text).toContain('| peers | 2026-01-02 03:04 | 2 | 0.100 | 2.00 |');
    expect(text).toContain(
      '| Decoding against llama.cpp Q8_0: at 0.5k | ≥ 1.6x | ≥ 2.2x | 1.90x (1.50–2.00) | **no** |',
    );
    expect(text).toContain('| Decoding against llama.cpp Q8_0: at 8k | ≥ 2.3x | ≥ 1.9x | not measured | – |');
    expect(text).toContain(
      'Not reached: at 0.5k: 1.90x (1.50–2.00), target ≥ 2.2x.\n\n<!-- notes:llama-decode -->\n<!-- /notes -->',
    );
    expect(text).toContain('| linear: head | 5.25 |');
    expect(text).not.toContain('### Profile:');
    expect([...text.matchAll(/\]\(performance\/([^)]+)\)/g)].map(([, file]) => file).sort()).toEqual(
      Object.keys(charts).sort(),
    );
    expect(Object.keys(charts)).toEqual(expect.arrayContaining(['peers-decode.svg', 'engine-decode.svg']));
    expect(withoutNote).toEqual(['llama-decode', 'questions', 'bandwidth', 'step']);
  });

  test('several machines stand beside their results', () => {
    const { text } = performanceDoc(
      { ...measured, peers: { result: PEERS, machine: { ...machine, cpu: 'Another' } } },
      { amx: true },
    );
    expect(text).toContain('No GPU is used.');
    expect(text).toContain('| peers | Another, 2 processors, 24 GiB, linux-x64, Node v24.0.0 | 2026-01-02 03:04 |');
    expect(text).toContain('target with AMX, as here');
  });

  test('what other processors reach stands beside the targets, each against its own', () => {
    const amx: Measured = {
      peers: {
        result: PEERS,
        machine: { ...machine, cpu: 'Some(R) Xeon(R) Processor', features: ['avx2', 'avx512_vnni', 'amx_int8'] },
      },
    };
    const { text } = performanceDoc(measured, { others: [amx] });
    expect(text).toContain('| measured | reached | Some Xeon with AMX |');
    expect(text).toContain(
      '| Decoding against llama.cpp Q8_0: at 0.5k | ≥ 1.6x | ≥ 2.2x | 1.90x (1.50–2.00) | **no** | 1.90x (1.50–2.00), yes |',
    );
    expect(text).toContain('| Decoding against llama.cpp Q8_0: at 8k | ≥ 2.3x | ≥ 1.9x | not measured | – | – |');
  });

  test('what stands between note marks is kept, also where the target has been reached since', () => {
    const written = performanceDoc(measured)
      .text.replace(
        '<!-- notes:llama-decode -->\n',
        '<!-- notes:llama-decode -->\nThe head.\n\nTried: *this*, and $$& that.\n',
      )
      .replace('<!-- notes:summary -->\n', '<!-- notes:summary -->\nFast.\n');
    const again = performanceDoc(measured, { before: written });
    expect(again.text).toBe(written);
    expect(again.withoutNote).not.toContain('llama-decode');
    const reached = performanceDoc(measured, { before: written, amx: true }).text;
    expect(Object.fromEntries(notesOf(reached))).toEqual({
      summary: 'Fast.',
      'llama-decode': 'The head.\n\nTried: *this*, and $& that.',
    });
    expect(() =>
      performanceDoc(measured, { before: `${written}<!-- notes:gone -->\nA text.\n<!-- /notes -->\n` }),
    ).toThrow('notes without a place: gone; the places are summary, conditions,');
  });

  test.each(['<!-- notes:summary -->', '<!-- /notes -->'])(
    'a text that has lost its mark %s is not thrown away',
    (mark) => {
      const broken = performanceDoc(measured).text.replace(mark, 'Fast.');
      expect(() => performanceDoc(measured, { before: broken })).toThrow('a note is not between');
    },
  );

  test('a larger shape is compared in a table of its own', () => {
    const result = { ...PEERS, shape: 'qwen2.5-1.5b' } as const;
    const { text } = performanceDoc({ 'peers-1.5b': { result, machine } });
    expect(text).toContain('## A larger shape');
    expect(text).toContain('| decode at 0.5k, per token | 1.90x (1.50–2.00) |');
    expect(text).toContain('| Decoding against llama.cpp Q8_0: at 0.5k | ≥ 1.6x | ≥ 2.2x | not measured | – |');
  });

  test('shifted reuse has its table', () => {
    const result = {
      model: 'starter',
      threads: 2,
      results: [{ blockTokens: 1000, shiftedTokens: 430, exactMs: figure([120, 130, 110]), shiftedMs: figure([60]) }],
    };
    expect(performanceDoc({ shifted: { result, machine } }).text).toContain(
      '| 1000 | 430 | 120 (110–130) | 60.0 | 2.00x |',
    );
  });

  test('a report goes below its heading, without the sections that are left out', () => {
    expect(nested('# A\n\na\n\n## B\n\nb\n\n### C\n\nc\n\n## D\n\nd\n', (title) => title === 'B')).toBe(
      '### A\n\na\n\n#### D\n\nd',
    );
    expect(nested('no heading')).toBe('no heading');
  });
});
