/**
 * docs/performance.md and its charts, from the results of the suites. Text between note marks is written by hand, is taken
 * over from the document as it was, and has a place for each group of targets. Pure.
 */
import { notePlace, notesOf } from './docNotes.ts';
import { productsReport } from './blockProducts.ts';
import { engineCharts, engineReport } from './engineReport.ts';
import { kvReport } from './kv/kvSuite.ts';
import { mixedCharts, mixedReport } from './mixed/mixedReport.ts';
import type { PeersResult } from './peers/peersBench.ts';
import { medians, peersReport } from './peers/peersReport.ts';
import { MEASURES, type MeasureName } from './peers/workload.ts';
import {
  compared,
  type EngineResult,
  GROUPS,
  type Machine,
  type Results,
  type Target,
  type TargetGroup,
  targets,
} from './performanceTargets.ts';
import { hasAmx, processorName } from './processor.ts';
import { byPart } from './profileTable.ts';
import type { ShiftedBench } from './shiftedBench.ts';
import { soakCharts, soakReport } from './soak/soakBench.ts';
import { short, table, withSpread } from './spread.ts';
import { barChart } from './svgPlot.ts';

/** Results with the machines that they were measured on. */
export type Measured = { [name in keyof Results]: { result: NonNullable<Results[name]>; machine: Machine } };

export interface PerformanceDoc {
  text: string;
  /** SVG texts by file name. */
  charts: { [file: string]: string };
  /** Places of groups with a target that is not reached, and without a note on what holds it. */
  withoutNote: string[];
}

/** Files that a result is read from, and the command that measures it. */
export const COMMANDS: { [name in keyof Results]-?: string } = {
  engine: 'npm run bench -- engine --profile --out bench-results',
  'engine-int4': 'npm run bench -- engine --precision int4 --profile --out bench-results/int4',
  'engine-1.5b': 'npm run bench -- engine --shape qwen2.5-1.5b --profile --out bench-results/1.5b',
  peers: 'npm run bench -- peers --out bench-results',
  'peers-1.5b': 'npm run bench -- peers --shape qwen2.5-1.5b --out bench-results/1.5b',
  mixed: 'npm run bench -- mixed --out bench-results',
  soak: 'npm run bench -- soak --out bench-results',
  shifted: 'npm run bench -- shifted --out bench-results',
  kv: 'npm run bench -- kv --out bench-results',
  products: 'npm run bench -- products --out bench-results',
};

/** Places that are there whatever is measured. */
const SUMMARY = 'summary';
const CONDITIONS = 'conditions';
const LARGER = 'larger-shape';

/** @param before the document as it was. @param others results of other processors, for the table of targets. @throws Error naming a note that has no place any more. */
export function performanceDoc(
  measured: Measured,
  { before = '', amx = false, others = [] }: { before?: string; amx?: boolean; others?: readonly Measured[] } = {},
): PerformanceDoc {
  const notes = notesOf(before);
  const placed = new Set<string>();
  const note = (name: string): string => {
    placed.add(name);
    return notePlace(name, notes.get(name));
  };
  const results = resultsOf(measured);
  const all = targets(results, amx);
  const charts: PerformanceDoc['charts'] = {};
  const chart = (name: string, svg: string): string => {
    charts[name] = svg;
    return `![${name.replace('.svg', '').replaceAll('-', ' ')}](performance/${name})`;
  };
  const isOpen = (group: TargetGroup): boolean => all.some((target) => target.group === group && target.met === false);
  const groups = (Object.keys(GROUPS) as TargetGroup[]).filter((group) => isOpen(group) || notes.has(group));
  const held = groups.map((group) =>
    [
      `### ${GROUPS[group]}`,
      ...notReached(
        all.filter((target) => target.group === group),
        amx,
      ),
      note(group),
    ].join('\n\n'),
  );
  const parts = [
    '<!-- Written by test/bench/performanceDoc.ts from the results of the benchmarks. What stands between note marks is kept; all else is written anew. -->',
    '# Performance',
    'How fast the engine is, measured, and compared with other local engines on the same machine. Models have the shapes of published ones and seeded random weights: how long an engine takes does not depend on what the weights are. Quote ratios within one run: another machine, another day or a busy neighbour changes every absolute figure.',
    note(SUMMARY),
    '## What it was measured on',
    ...conditions(measured),
    note(CONDITIONS),
    '## Targets',
    targetSummary(all),
    targetTable(all, amx, others),
    ...(held.length ? ['## What holds the rest', ...held] : []),
    ...larger(results, note),
    '## Measuring again',
    measuringAgain(),
    ...details(results, chart),
  ];
  const lost = [...notes.keys()].filter((name) => !placed.has(name));
  if (lost.length)
    throw new Error(
      `notes without a place: ${lost.join(', ')}; the places are ${[SUMMARY, CONDITIONS, LARGER, ...Object.keys(GROUPS)].join(', ')}`,
    );
  return {
    text: `${parts.join('\n\n')}\n`,
    charts,
    withoutNote: groups.filter((group) => isOpen(group) && !notes.has(group)),
  };
}

function resultsOf(measured: Measured): Results {
  return Object.fromEntries(Object.entries(measured).map(([name, { result }]) => [name, result])) as Results;
}

const gibibytes = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(0)} GiB`;

function conditions(measured: Measured): string[] {
  const entries = Object.entries(measured) as [keyof Results, { machine: Machine; result: { threads?: number } }][];
  const name = ({ processors, memoryBytes, platform, node, ...processor }: Machine): string =>
    `${processorName(processor)}, ${processors} processors, ${gibibytes(memoryBytes)}, ${platform}, Node ${node}`;
  const machines = [...new Set(entries.map(([, { machine }]) => name(machine)))];
  const only = machines.length === 1;
  const rows = entries.map(([file, { machine, result }]) => [
    file,
    ...(only ? [] : [name(machine)]),
    machine.date.slice(0, 16).replace('T', ' '),
    result.threads ?? '–',
    short(machine.loadBefore),
    short(machine.loadAfter),
  ]);
  return [
    ...(machines.length === 0 ? ['Nothing.'] : only ? [`${machines[0]}; no GPU is used.`] : ['No GPU is used.']),
    ...(rows.length
      ? [table(['results', ...(only ? [] : ['machine']), 'ended (UTC)', 'threads', 'load before', 'load after'], rows)]
      : []),
  ];
}

function targetSummary(all: readonly Target[]): string {
  const judged = all.filter(({ met, required }) => met !== null && required.other);
  const open = all.filter(({ measured }) => measured === null).length;
  return `${judged.filter(({ met }) => met).length} of ${judged.length} measured targets are reached${open ? `; ${open} figures are not measured` : ''}. "x" is how many times better Kvasir is, by the medians (over the rounds: least–most), unless the row says otherwise.`;
}

function targetTable(all: readonly Target[], amx: boolean, others: readonly Measured[]): string {
  const columns = others.map((measured) => {
    const machines = Object.values(measured).map(({ machine }) => machine);
    return { name: processorName(machines[0]!), targets: targets(resultsOf(measured), machines.some(hasAmx)) };
  });
  /** What another processor has of a target; none of what it was not measured for. */
  const there = (of: readonly Target[], group: TargetGroup, what: string): string => {
    const found = of.find((target) => target.group === group && target.what === what);
    return found?.measured ? `${found.measured}${found.met === null ? '' : found.met ? ', yes' : ', **no**'}` : '–';
  };
  const here = (with_: boolean): string => (with_ === amx ? ', as here' : '');
  const rows = all.map(({ group, what, required, measured, met }) => [
    `${GROUPS[group]}: ${what}`,
    required.amx || '–',
    required.other || '–',
    measured ?? 'not measured',
    met === null ? '–' : met ? 'yes' : '**no**',
    ...columns.map((column) => there(column.targets, group, what)),
  ]);
  return table(
    [
      '',
      `target with AMX${here(true)}`,
      `without AMX${here(false)}`,
      'measured',
      'reached',
      ...columns.map(({ name }) => name),
    ],
    rows,
  );
}

function notReached(of: readonly Target[], amx: boolean): string[] {
  const missed = of.filter(({ met }) => met === false);
  return missed.length
    ? [
        `Not reached: ${missed.map(({ what, measured, required }) => `${what}: ${measured}, target ${required[amx ? 'amx' : 'other']}`).join('; ')}.`,
      ]
    : [];
}

/** A larger shape has no targets of its own. */
function larger(results: Results, note: (name: string) => string): string[] {
  const peers = results['peers-1.5b'];
  if (!peers && !results['engine-1.5b']) return [];
  const found = peers ? medians(peers.samples) : {};
  const rivals = peers
    ? (['llama-q8', 'openvino', 'transformers'] as const).filter((id) => peers.participants[id])
    : [];
  const rows = (Object.keys(found) as MeasureName[]).map((name) => [
    MEASURES[name].label,
    ...rivals.map((id) => compared(peers, name, 'kvasir', id).shown ?? '–'),
  ]);
  return [
    '## A larger shape',
    `How many times better Kvasir is on the shape of ${peers?.shape ?? results['engine-1.5b']!.shape}${rows.length ? '' : ': not measured; by itself see below'}.`,
    ...(rows.length ? [table(['', ...rivals.map((id) => peers!.participants[id]!.label)], rows)] : []),
    note(LARGER),
  ];
}

function measuringAgain(): string {
  const lines = Object.values(COMMANDS);
  return [
    'On a quiet machine; [peers.md](peers.md), [mixed.md](mixed.md) and [shifted.md](shifted.md) say what is measured and how.',
    `\`\`\`sh\nnpm run bench -- peers --setup                 # once; for the larger shape also with --shape qwen2.5-1.5b\n${lines.join('\n')}\nnpx node test/bench/performanceDoc.ts bench-results  # writes this document anew; what is not there is taken from performance/results\n\`\`\``,
  ].join('\n\n');
}

type Chart = (name: string, svg: string) => string;

function details(results: Results, chart: Chart): string[] {
  const all = (of: { [file: string]: string }): string[] => Object.entries(of).map(([name, svg]) => chart(name, svg));
  const { peers, mixed, soak, shifted, kv, products } = results;
  const engines = (['engine', 'engine-int4', 'engine-1.5b'] as const).flatMap((name) =>
    results[name] ? [[name, results[name]] as const] : [],
  );
  return [
    ...(peers ? ['## Other engines on the same machine', ...all(peersCharts(peers)), nested(peersReport(peers))] : []),
    ...(results['peers-1.5b'] ? [nested(peersReport(results['peers-1.5b']))] : []),
    ...(engines.length
      ? [
          '## The engine by itself',
          'One sequence or several, driven without an editor, a server or a protocol in between.',
        ]
      : []),
    ...engines.flatMap(([name, engine]) => [
      ...(name === 'engine' ? all(engineCharts(engine)) : []),
      nested(
        engineReport(engine),
        (title) => title.startsWith('Profile: ') || (name !== 'engine' && title.startsWith('Choosing a token')),
      ),
      ...profileOf(engine),
    ]),
    ...(products ? ['## Products by themselves', nested(productsReport(products))] : []),
    ...(mixed
      ? [
          '## Everything at once',
          ...all(mixedCharts(mixed)),
          nested(mixedReport(mixed), (title) => title === 'Against the targets'),
        ]
      : []),
    ...(soak ? ['## Long random use', ...all(soakCharts(soak)), nested(soakReport(soak))] : []),
    ...(shifted ? ['## After an edit, with position-shifted reuse', ...shiftedTable(shifted)] : []),
    ...(kv ? ['## Formats of stored K/V', nested(kvReport(kv))] : []),
  ];
}

function shiftedTable({ model, threads, results }: ShiftedBench): string[] {
  const rows = results.map(({ blockTokens, shiftedTokens, exactMs, shiftedMs }) => [
    blockTokens,
    shiftedTokens,
    withSpread(exactMs),
    withSpread(shiftedMs),
    `${short(exactMs.median / shiftedMs.median)}x`,
  ]);
  return [
    `First token of a question after a line was put into the middle of a file, ms; ${model}, ${threads} threads. An option, off by default ([shifted.md](shifted.md)).`,
    table(['tokens of the file', 'taken over', 'all computed', 'with shifted reuse', 'sooner'], rows),
  ];
}

/** Where the time of the profiled steps goes, side by side; empty without a profile. */
function profileOf({ profiles }: EngineResult): string[] {
  if (profiles.length === 0) return [];
  const tables = profiles.map((profile) => byPart(profile));
  const of = (part: string): number[] => tables.map((rows) => rows.find((row) => row.part === part)?.ms ?? 0);
  const parts = [...new Set(tables.flat().map(({ part }) => part))].sort(
    (a, b) => Math.max(...of(b)) - Math.max(...of(a)),
  );
  const rows = [
    ...parts.map((part) => [part, ...of(part).map((ms) => (ms ? short(ms) : '–'))]),
    [
      'between the operators, profiling included',
      ...profiles.map(({ runMs, operatorsMs }) => short(runMs - operatorsMs)),
    ],
    ['feeds and outputs across the border', ...profiles.map(({ callMs, runMs }) => short(callMs - runMs))],
    ...(profiles.some(({ crossingMs }) => crossingMs !== undefined)
      ? [
          [
            'the same by themselves, nothing profiled',
            ...profiles.map(({ crossingMs }) => short(crossingMs ?? Number.NaN)),
          ],
        ]
      : []),
    ['in all', ...profiles.map(({ callMs }) => short(callMs))],
  ];
  return [
    '#### Where the time of a step goes, ms',
    "onnxruntime's profile; profiling itself slows small operators.",
    table(['', ...profiles.map(({ name }) => name)], rows),
  ];
}

function peersCharts(peers: PeersResult): { [file: string]: string } {
  const found = medians(peers.samples);
  const draw = (
    title: string,
    unit: string,
    ids: readonly string[],
    rows: readonly (readonly [string, MeasureName])[],
  ): string | null => {
    const present = rows.filter(([, name]) => ids.some((id) => found[name]?.[id]));
    const shown = ids.filter((id) => peers.participants[id] && present.length);
    if (shown.length === 0) return null;
    const series = shown.map((id) => ({
      name: peers.participants[id]!.label,
      bars: present.map(([, name]) => {
        const one = found[name]?.[id];
        return one ? { value: one.median, least: one.least, most: one.most } : null;
      }),
    }));
    return barChart({ title, unit, groups: present.map(([label]) => label), series });
  };
  const eight = ['kvasir', 'llama-q8', 'openvino', 'transformers'];
  const four = ['kvasir-int4', 'llama-q4'];
  const decode = [
    ['at 0.5k', 'decode512'],
    ['at 2k', 'decode2k'],
    ['at 8k', 'decode8k'],
  ] as const;
  const prefill = [
    ['0.5k', 'prompt512'],
    ['2k', 'prompt2k'],
    ['8k', 'prompt8k'],
    ['512 behind 2k', 'chunk2k'],
    ['512 behind 7.7k', 'chunk7k'],
  ] as const;
  const charts = {
    'peers-decode.svg': draw('Decoding, one sequence', 'ms per token, less is better', eight, decode),
    'peers-prefill.svg': draw('Prefill', 'tokens/s, more is better', eight, prefill),
    'peers-together.svg': draw('Four sequences decoding', 'tokens/s of all, more is better', eight, [
      ['at 0.5k', 'together'],
    ]),
    'peers-decode-4-bit.svg': draw('Decoding with 4-bit weights', 'ms per token, less is better', four, decode),
    'peers-prefill-4-bit.svg': draw('Prefill with 4-bit weights', 'tokens/s, more is better', four, prefill),
  };
  return Object.fromEntries(Object.entries(charts).filter((entry): entry is [string, string] => entry[1] !== null));
}

/** Under a heading of level 2: its own headings come below. @param without sections that are left out, by their titles. */
export function nested(report: string, without: (title: string) => boolean = () => false): string {
  const sections = report.split(/^(?=#+ )/m);
  const level = (section: string): number => /^#+(?= )/.exec(section)?.[0].length ?? Number.POSITIVE_INFINITY;
  const down = 3 - Math.min(...sections.map(level));
  let dropped = Number.POSITIVE_INFINITY;
  const kept = sections.filter((section) => {
    // What is below a section that is left out goes with it.
    if (level(section) > dropped) return false;
    dropped = without(section.split('\n')[0]!.replace(/^#+ /, '')) ? level(section) : Number.POSITIVE_INFINITY;
    return dropped === Number.POSITIVE_INFINITY;
  });
  return kept
    .map((section) => (Number.isFinite(level(section)) && down > 0 ? '#'.repeat(down) : '') + section)
    .join('')
    .trim();
}
