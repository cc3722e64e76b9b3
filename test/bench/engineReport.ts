/**
 * Formats the engine suite's result as Markdown tables and charts. Computes the shares of the memory bandwidth. Pure.
 */
import type { CaseResult, EngineBench } from './engineBench.ts';
import type { Group } from './engineCases.ts';
import { byPart, linearMs, oneToken, profileReport, type StepProfile, tokensTogether } from './profileTable.ts';
import { type Figure, short, table, withSpread } from './spread.ts';
import { type Bar, barChart } from './svgPlot.ts';

const of = ({ results }: EngineBench, group: Group): CaseResult[] => results.filter((result) => result.group === group);
const bar = ({ median, least, most }: Figure): Bar => ({ value: median, least, most });
const percent = (share: number): string => `${(100 * share).toFixed(0)}%`;

export interface Shares {
  /** Bandwidth of the best scan in GB/s. */
  bandwidth: number;
  /** Milliseconds to read all weights once at this bandwidth. */
  weightsMs: number;
  /**
   * Shares that `weightsMs` has of two times: of the whole step of one token at the shortest context, and of its linear
   * layers. The second needs a profile and uses the bandwidth measured with that profile.
   */
  step?: number;
  linear?: number;
}

/** Returns null if the bandwidth was not measured. */
export function shares(bench: EngineBench): Shares | null {
  const scans = of(bench, 'bandwidth').map(({ figures }) => figures.gigabytesPerSecond!.median);
  if (scans.length === 0) return null;
  const bandwidth = Math.max(...scans);
  const weightsMs = bench.weightBytesPerStep / bandwidth / 1e6;
  const step = of(bench, 'decode')[0]?.figures.ms?.median;
  const profile = bench.profiles.find(({ name }) => name.startsWith(oneToken()));
  const linear = profile?.bandwidth && bench.weightBytesPerStep / profile.bandwidth / 1e6 / linearMs(profile);
  return { bandwidth, weightsMs, ...(step && { step: weightsMs / step }), ...(linear && { linear }) };
}

export function engineReport(bench: EngineBench): string {
  const rows = (group: Group, columns: (result: CaseResult) => (string | number)[]) => of(bench, group).map(columns);
  const parts: [string, string[], (string | number)[][]][] = [
    [
      'Decoding, one sequence',
      ['context', 'window slots', 'ms per token', 'of it outside the runner', 'kB allocated per step', 'of it logits'],
      rows('decode', ({ key, figures }) => [
        key.context!,
        figures.poolSlots!.median,
        withSpread(figures.ms!),
        withSpread(figures.outsideMs!),
        withSpread(figures.allocatedKb!),
        Math.round(figures.logitsKb!.median),
      ]),
    ],
    [
      'A window that grows by a page, and one that shrinks because the ceiling falls',
      [
        'context',
        'ms of the step in which it grows',
        'slots then',
        'ms until the step after it has shrunk',
        'slots then',
        'ms of other steps',
      ],
      rows('growth', ({ key, figures }) => [
        key.context!,
        withSpread(figures.growthMs!),
        figures.poolSlots!.median,
        withSpread(figures.shrinkMs!),
        figures.slotsAfter!.median,
        withSpread(figures.ms!),
      ]),
    ],
    [
      'A chunk inside a prompt',
      ['tokens before it', 'chunk', 'window slots', 'tokens/s'],
      rows('prefill', ({ key, figures }) => [
        key.context!,
        key.chunk!,
        figures.poolSlots!.median,
        withSpread(figures.tokensPerSecond!),
      ]),
    ],
    [
      'A chunk in the window lane',
      ['tokens before it', 'chunk', 'ms', 'in tiles', 'ms at once', 'gain'],
      rows('tiles', ({ key, figures }) => [
        key.context!,
        key.chunk!,
        withSpread(figures.ms!),
        figures.tiled!.median ? 'yes' : 'no',
        withSpread(figures.atOnceMs!),
        withSpread(figures.gain!),
      ]),
    ],
    [
      'Sequences decoding together',
      ['context of each', 'prefix', 'sequences', 'ms per step', 'tokens/s in all'],
      rows('sequences', ({ key, figures }) => [
        key.context!,
        key.prefix!,
        key.count!,
        withSpread(figures.stepMs!),
        withSpread(figures.tokensPerSecond!),
      ]),
    ],
    [
      'Whole prompts, in steps as in use',
      ['tokens', 'ms to the first token', 'tokens/s', 'steps'],
      rows('whole', ({ key, figures }) => [
        key.tokens!,
        withSpread(figures.ms!),
        withSpread(figures.tokensPerSecond!),
        figures.steps!.median,
      ]),
    ],
    [
      'Questions about an open file: ms to the first token',
      [
        'tokens of the file',
        'first',
        'second',
        'after a line in its middle has changed',
        'second / first',
        'changed / first',
      ],
      rows('questions', ({ key, figures: { first, second, edited } }) => [
        key.tokens!,
        withSpread(first!),
        withSpread(second!),
        withSpread(edited!),
        short(second!.median / first!.median),
        short(edited!.median / first!.median),
      ]),
    ],
    [
      'Choosing a token from one row of logits',
      ['way', 'vocabulary', 'ms'],
      rows('sampling', ({ key, figures }) => [key.way!, key.vocabulary!, withSpread(figures.ms!)]),
    ],
    [
      'Drafts: one sequence that writes a given text',
      ['text', 'context', 'tokens', 'ms per token without', 'with', 'gain', 'tokens per step', 'drafted', 'right'],
      rows('speculation', ({ key, figures }) => [
        key.text!,
        key.context!,
        key.answer!,
        withSpread(figures.plainMs!),
        withSpread(figures.draftedMs!),
        withSpread(figures.gain!),
        short(figures.tokensPerStep!.median),
        figures.draftedTokens!.median,
        figures.acceptedTokens!.median,
      ]),
    ],
    [
      `Reading ${(bench.scanBytes / 2 ** 20).toFixed(0)} MiB once`,
      ['way', 'GB/s'],
      rows('bandwidth', ({ key, figures }) => [key.way!, withSpread(figures.gigabytesPerSecond!)]),
    ],
  ];
  const share = shares(bench);
  const reached = share && [
    '### Share of the bandwidth',
    `A step reads ${(bench.weightBytesPerStep / 1e6).toFixed(0)} MB of weights once. At ${short(share.bandwidth)} GB/s, the best of the ways above, that is ${short(share.weightsMs)} ms.`,
    table(
      ['one token at the shortest context', 'share'],
      [
        ...(share.linear === undefined ? [] : [['linear layers (profiled)', percent(share.linear)]]),
        ...(share.step === undefined ? [] : [['whole step', percent(share.step)]]),
      ],
    ),
  ];
  return [
    `## Engine: ${bench.shape}, ${(bench.parameters / 1e6).toFixed(0)} million parameters, random weights in ${bench.precision}, ${bench.threads} threads`,
    'Medians (least–most) over the rounds.',
    ...parts
      .filter(([, , body]) => body.length > 0)
      .map(([title, head, body]) => `### ${title}\n\n${table(head, body)}`),
    ...(reached || []),
    ...bench.profiles.map((profile) => profileReport(profile, unprofiledMs(bench, profile))),
  ].join('\n\n');
}

/** Milliseconds of the runner in the same step without the profiler, if they were measured. */
function unprofiledMs(bench: EngineBench, { name }: StepProfile): number | undefined {
  const ms = (result: CaseResult | undefined, step: string): number | undefined =>
    result && result.figures[step]!.median - result.figures.outsideMs!.median;
  const separate = of(bench, 'sequences').find(
    ({ key }) => key.prefix === 'separate' && name === tokensTogether(key.context!, key.count!),
  );
  return (
    ms(
      of(bench, 'decode').find(({ key }) => name === oneToken(key.context)),
      'ms',
    ) ?? ms(separate, 'stepMs')
  );
}

/** SVG texts by file name. */
export function engineCharts(bench: EngineBench): Record<string, string> {
  const charts: Record<string, string> = {};
  const decode = of(bench, 'decode');
  if (decode.length)
    charts['engine-decode.svg'] = barChart({
      title: 'Decoding, one sequence',
      unit: 'ms per token',
      groups: decode.map(({ key }) => `context ${key.context}`),
      series: [{ name: bench.shape, bars: decode.map(({ figures }) => bar(figures.ms!)) }],
    });
  const grouped = (
    group: Group,
    title: string,
    groupOf: (result: CaseResult) => string,
    seriesOf: (result: CaseResult) => string,
  ): string | null => {
    const results = of(bench, group);
    if (results.length === 0) return null;
    const groups = [...new Set(results.map(groupOf))];
    const names = [...new Set(results.map(seriesOf))];
    const find = (g: string, s: string): Bar | null => {
      const found = results.find((result) => groupOf(result) === g && seriesOf(result) === s);
      return found ? bar(found.figures.tokensPerSecond!) : null;
    };
    return barChart({
      title,
      unit: 'tokens/s',
      groups,
      series: names.map((name) => ({ name, bars: groups.map((g) => find(g, name)) })),
    });
  };
  const prefill = grouped(
    'prefill',
    'A chunk inside a prompt',
    ({ key }) => `after ${key.context} tokens`,
    ({ key }) => `chunk of ${key.chunk}`,
  );
  const whole = grouped(
    'whole',
    'Whole prompts, in steps as in use',
    ({ key }) => `${key.tokens} tokens`,
    () => bench.shape,
  );
  const sequences = grouped(
    'sequences',
    'Sequences decoding together',
    ({ key }) => (key.count === 1 ? '1 sequence' : `${key.count} sequences`),
    ({ key }) => `${key.prefix} prefix, ${key.context}`,
  );
  if (prefill) charts['engine-prefill.svg'] = prefill;
  if (whole) charts['engine-whole.svg'] = whole;
  if (sequences) charts['engine-sequences.svg'] = sequences;
  const decodes = bench.profiles.filter(({ name }) => name.startsWith(oneToken()));
  if (decodes.length) charts['engine-profile.svg'] = profileChart(decodes);
  return charts;
}

function profileChart(profiles: readonly StepProfile[]): string {
  const tables = profiles.map((profile) => byPart(profile));
  const parts = [...new Set(tables.flat().map(({ part }) => part))]
    .map((part) => ({ part, ms: tables.map((rows) => rows.find((row) => row.part === part)?.ms ?? 0) }))
    .sort((a, b) => Math.max(...b.ms) - Math.max(...a.ms))
    .slice(0, 6);
  return barChart({
    title: 'One token: where the time goes',
    unit: 'ms',
    groups: parts.map(({ part }) => part),
    series: profiles.map(({ name }, i) => ({ name, bars: parts.map(({ ms }) => ({ value: ms[i]! })) })),
  });
}
