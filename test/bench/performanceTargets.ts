/**
 * What the engine is meant to reach and what the results of the suites say about it. Every figure comes from a result; what
 * no result has is not measured. Judged are medians, as ratios within one run. Pure.
 */
import type { ProductsBench } from './blockProducts.ts';
import type { EngineBench } from './engineBench.ts';
import type { Group } from './engineCases.ts';
import type { Shares } from './engineReport.ts';
import type { KvBench } from './kv/kvSuite.ts';
import type { MixedBench } from './mixed/mixedBench.ts';
import { CLASSES, figuresOf, targetsOf } from './mixed/mixedFigures.ts';
import type { PeersResult } from './peers/peersBench.ts';
import { medians, ratio } from './peers/peersReport.ts';
import type { MeasureName } from './peers/workload.ts';
import type { Processor } from './processor.ts';
import { oneToken } from './profileTable.ts';
import type { ShiftedBench } from './shiftedBench.ts';
import { MAX_GROWTH_BYTES, type SoakBench } from './soak/soakBench.ts';
import { type Figure, short } from './spread.ts';

/** What a result was measured on. */
export interface Machine extends Processor {
  processors: number;
  memoryBytes: number;
  platform: string;
  node: string;
  loadBefore: number;
  loadAfter: number;
  /** ISO 8601. */
  date: string;
}

export type EngineResult = EngineBench & { shares: Shares | null };

/** By the name of the file that holds it, without `.json`. */
export interface Results {
  engine?: EngineResult;
  'engine-int4'?: EngineResult;
  'engine-1.5b'?: EngineResult;
  peers?: PeersResult;
  'peers-1.5b'?: PeersResult;
  mixed?: MixedBench;
  soak?: SoakBench;
  shifted?: ShiftedBench;
  kv?: KvBench;
  products?: ProductsBench;
}

/** Places for a text by hand, one for the targets of each; in the order of the table. */
export const GROUPS = {
  'llama-decode': 'Decoding against llama.cpp Q8_0',
  'llama-prefill': 'Prefill against llama.cpp Q8_0',
  'llama-together': 'Four sequences against llama.cpp Q8_0',
  'openvino-decode': 'Decoding against OpenVINO GenAI',
  'openvino-prefill': 'Prefill of a whole prompt against OpenVINO GenAI',
  'openvino-together': 'Four sequences against OpenVINO GenAI',
  questions: 'Questions about an open file of 8k tokens',
  int4: 'Int4 weights against llama.cpp Q4_0',
  bandwidth: 'One token at 0.5k, share of what reading the weights once takes',
  mixed: 'Everything at once',
  speculation: 'Drafts',
  soak: 'Long random use',
  step: 'Beside the computation of a step',
} as const;
export type TargetGroup = keyof typeof GROUPS;

export interface Target {
  group: TargetGroup;
  what: string;
  /** What is asked for on a processor with AMX and on one without; empty where the figure is only reported. */
  required: { amx: string; other: string };
  /** Null where no result has it. */
  measured: string | null;
  met: boolean | null;
}

/** What is asked for: one bound for every processor, or two. */
type Bound = number | { amx: number; other: number };

interface Judged {
  value: number | undefined;
  /** Instead of the value alone. */
  shown?: string;
  unit: string;
  bound: Bound;
  atMost?: boolean;
}

/** @param amx of the processor that was measured on. */
export function targets(results: Results, amx = false): Target[] {
  const judge = (group: TargetGroup, what: string, { value, shown, unit, bound, atMost = false }: Judged): Target => {
    const of = (key: 'amx' | 'other'): number => (typeof bound === 'number' ? bound : bound[key]);
    const required = (key: 'amx' | 'other'): string => `${atMost ? '≤' : '≥'} ${of(key)}${unit}`;
    const limit = of(amx ? 'amx' : 'other');
    const known = value !== undefined && Number.isFinite(value);
    return {
      group,
      what,
      required: { amx: required('amx'), other: required('other') },
      measured: known ? (shown ?? `${short(value)}${unit}`) : null,
      met: known ? (atMost ? value <= limit : value >= limit) : null,
    };
  };
  return [
    ...againstPeers(results.peers, results.engine, judge),
    ...byItself(results.engine, judge),
    ...together(results.mixed, judge),
    ...drafts(results.engine, judge),
    ...soaked(results.soak, judge),
    ...besideTheStep(results.engine, judge),
  ];
}

type Judge = (group: TargetGroup, what: string, judged: Judged) => Target;

/** How many times better one participant is than another by the medians, with the range over the rounds. */
export function compared(
  peers: PeersResult | undefined,
  name: MeasureName,
  ours: string,
  theirs: string,
): { value: number | undefined; shown?: string } {
  if (!peers) return { value: undefined };
  const row = medians(peers.samples)[name];
  if (!row?.[ours] || !row[theirs]) return { value: undefined };
  const value = ratio(name, row[ours].median, row[theirs].median);
  const of = (id: string, round: number): number | undefined =>
    peers.samples.find(
      (sample) => sample.participant === id && sample.round === round && sample.figures[name] !== undefined,
    )?.figures[name];
  const rounds = [...new Set(peers.samples.map(({ round }) => round))].flatMap((round) => {
    const [a, b] = [of(ours, round), of(theirs, round)];
    return a === undefined || b === undefined ? [] : [ratio(name, a, b)];
  });
  return {
    value,
    shown:
      rounds.length > 1
        ? `${short(value)}x (${short(Math.min(...rounds))}–${short(Math.max(...rounds))})`
        : `${short(value)}x`,
  };
}

function againstPeers(peers: PeersResult | undefined, engine: EngineResult | undefined, judge: Judge): Target[] {
  const against = (
    group: TargetGroup,
    what: string,
    name: MeasureName,
    bound: Bound,
    theirs: string,
    ours = 'kvasir',
  ): Target => judge(group, what, { ...compared(peers, name, ours, theirs), unit: 'x', bound });
  const asked = engine?.results.find(({ group }) => group === 'questions')?.figures;
  const own = medians(peers?.samples ?? []);
  const [first, second] = [asked?.first ?? own.firstQuestion?.kvasir, asked?.second ?? own.secondQuestion?.kvasir];
  const reported = (['prompt512', 'chunk2k', 'chunk7k'] as const).map(
    (name) => compared(peers, name, 'kvasir-int4', 'llama-q4').value,
  );
  return [
    against('llama-decode', 'at 0.5k', 'decode512', { amx: 1.6, other: 2.2 }, 'llama-q8'),
    against('llama-decode', 'at 2k', 'decode2k', { amx: 1.8, other: 2 }, 'llama-q8'),
    against('llama-decode', 'at 8k', 'decode8k', { amx: 2.3, other: 1.9 }, 'llama-q8'),
    against('llama-prefill', '512 tokens at 0', 'prompt512', { amx: 1.5, other: 2.4 }, 'llama-q8'),
    against('llama-prefill', '512 tokens behind 2k', 'chunk2k', { amx: 2.2, other: 2.1 }, 'llama-q8'),
    against('llama-prefill', '512 tokens behind 7.7k', 'chunk7k', { amx: 2.5, other: 2.3 }, 'llama-q8'),
    against('llama-together', 'tokens of all', 'together', 4, 'llama-q8'),
    against('openvino-decode', 'at 0.5k', 'decode512', 1.6, 'openvino'),
    against('openvino-decode', 'at 2k', 'decode2k', 1.4, 'openvino'),
    against('openvino-decode', 'at 8k', 'decode8k', 1.3, 'openvino'),
    against('openvino-prefill', '0.5k', 'prompt512', 1, 'openvino'),
    against('openvino-prefill', '2k', 'prompt2k', 1, 'openvino'),
    against('openvino-prefill', '8k', 'prompt8k', 1, 'openvino'),
    against('openvino-together', 'tokens of all', 'together', 1.2, 'openvino'),
    judge('questions', 'first token of a second question, sooner than of the first', {
      value: first && second && first.median / second.median,
      unit: 'x',
      bound: 20,
    }),
    against(
      'questions',
      "first token after an edited line, sooner than llama.cpp's with its own prompt cache",
      'afterEdit',
      3,
      'llama-q8',
    ),
    against('int4', 'decoding at 0.5k', 'decode512', 1.2, 'llama-q4', 'kvasir-int4'),
    against('int4', 'decoding at 2k', 'decode2k', 1.4, 'llama-q4', 'kvasir-int4'),
    against('int4', 'decoding at 8k', 'decode8k', 1.4, 'llama-q4', 'kvasir-int4'),
    {
      group: 'int4',
      what: 'prefill of 512 tokens at 0, behind 2k, behind 7.7k',
      required: { amx: '', other: '' },
      measured: reported.every((value) => value === undefined)
        ? null
        : reported.map((value) => (value === undefined ? '–' : `${short(value)}x`)).join(', '),
      met: null,
    },
  ];
}

function byItself(engine: EngineResult | undefined, judge: Judge): Target[] {
  const share = (of: number | undefined): Pick<Judged, 'value' | 'unit'> => ({ value: of && 100 * of, unit: '%' });
  return [
    judge('bandwidth', 'linear layers', { ...share(engine?.shares?.linear), bound: 90 }),
    judge('bandwidth', 'the whole step', { ...share(engine?.shares?.step), bound: 80 }),
  ];
}

function together(mixed: MixedBench | undefined, judge: Judge): Target[] {
  const figures = mixed ? figuresOf(mixed) : [];
  const { throughput, total } = targetsOf(figures);
  const rush = (way: string): [string, number][] | undefined => {
    const found = figures.find((one) => one.scene === 'rush' && one.way === way);
    return (
      found &&
      CLASSES.filter((priority) => found.classes[priority].ttft.count > 0).map((priority) => [
        priority,
        found.classes[priority].ttft.most,
      ])
    );
  };
  const [waits, single] = [rush('continuous'), new Map(rush('one by one'))];
  const seconds = (ms: number): string => `${short(ms / 1000)} s`;
  const fair = waits?.length && single.size ? waits.every(([priority, ms]) => ms <= single.get(priority)!) : null;
  const asked = `≤ the same class's one by one${single.size ? `: ${[...single].map(([priority, ms]) => `${priority} ${seconds(ms)}`).join(', ')}` : ''}`;
  return [
    judge('mixed', 'throughput of the rush, over one by one', { value: throughput, unit: 'x', bound: 2.5 }),
    judge('mixed', 'P95 of a completion with chat and summaries running, over alone', {
      value: total,
      unit: 'x',
      bound: 2,
      atMost: true,
    }),
    {
      group: 'mixed',
      what: 'no class starves in the rush: longest waits for a first token',
      required: { amx: asked, other: asked },
      measured: fair === null ? null : waits!.map(([priority, ms]) => `${priority} ${seconds(ms)}`).join(', '),
      met: fair,
    },
  ];
}

function figureOf(
  engine: EngineResult | undefined,
  group: Group,
  key: string,
  value: string,
  name: string,
): Figure | undefined {
  return engine?.results.find((result) => result.group === group && result.key[key] === value)?.figures[name];
}

function drafts(engine: EngineResult | undefined, judge: Judge): Target[] {
  const gain = (text: string, what: string, bound: number): Target => {
    const found = figureOf(engine, 'speculation', 'text', text, 'gain');
    return judge('speculation', what, {
      value: found?.median,
      shown:
        found && found.samples.length > 1
          ? `${short(found.median)}x (${short(found.least)}–${short(found.most)})`
          : undefined,
      unit: 'x',
      bound,
    });
  };
  return [
    gain('insert', 'code with lines added, over no drafts', 1.8),
    gain('rename', 'code with a name changed', 1.8),
    gain('random', 'random text', 0.97),
    gain('pairs', 'random text in which every pair has been seen', 0.97),
  ];
}

function soaked(soak: SoakBench | undefined, judge: Judge): Target[] {
  const runs = soak?.runs ?? [];
  const real = runs.filter(({ name }) => name.startsWith('real graph'));
  const sum = (of: typeof runs): number => of.reduce((total, { result }) => total + result.numRequests, 0);
  const asked = '≥ 10000, 2000 of them through the real graph';
  // A run ends at the first token that differs beyond rounding and at the first slot that is missing: those that are here had none.
  const requests: Target = {
    group: 'soak',
    what: 'requests with the tokens that they get alone, all slots accounted for at every step',
    required: { amx: asked, other: asked },
    measured: runs.length ? runs.map(({ name, result }) => `${name}: ${result.numRequests}`).join('; ') : null,
    met: runs.length ? sum(runs) >= 10_000 && sum(real) >= 2000 : null,
  };
  const least = real.length
    ? Math.min(...real.flatMap(({ result: { events } }) => [events.evictions, events.preemptions]))
    : undefined;
  const differing = real.length
    ? 100 * Math.max(...real.map(({ result }) => result.tokensDiffering / result.tokensCompared))
    : undefined;
  const growth = runs.length ? Math.max(...runs.map(({ growthPer1000 }) => growthPer1000)) / 1e6 : undefined;
  return [
    requests,
    judge('soak', 'evictions and preemptions, each, in every run through the real graph', {
      value: least,
      shown: `${least} or more`,
      unit: '',
      bound: 200,
    }),
    judge('soak', 'tokens that differ within rounding', { value: differing, unit: '%', bound: 0.1, atMost: true }),
    judge('soak', 'growth of resident memory over the last half, MB per 1,000 requests', {
      value: growth,
      unit: '',
      bound: MAX_GROWTH_BYTES / 1e6,
      atMost: true,
    }),
  ];
}

function besideTheStep(engine: EngineResult | undefined, judge: Judge): Target[] {
  const decode = engine?.results.filter(({ group }) => group === 'decode').map(({ figures }) => figures) ?? [];
  const crossings = (engine?.profiles ?? [])
    .filter(({ name }) => name.startsWith(oneToken()))
    .map((profile) => profile.crossingMs ?? profile.callMs - profile.runMs);
  const isProfiled = engine?.profiles.some(({ crossingMs }) => crossingMs === undefined);
  const garbage = decode.length
    ? Math.max(0, ...decode.map(({ allocatedKb, logitsKb }) => allocatedKb!.median - logitsKb!.median))
    : undefined;
  return [
    judge('step', 'garbage of one token beside the logits, kB, at most', {
      value: garbage,
      unit: '',
      bound: 200,
      atMost: true,
    }),
    judge(
      'step',
      `one token's feeds and outputs across the border into native code, ms${isProfiled ? ' (profiled)' : ''}, at most`,
      { value: crossings.length ? Math.max(...crossings) : undefined, unit: '', bound: 1, atMost: true },
    ),
  ];
}
