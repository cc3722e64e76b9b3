/**
 * Summarizes onnxruntime's profile of some steps: milliseconds per step, by part of the model and by operator. Pure.
 */
import { LINEAR_PREFIX, NESTING, PASSES, WINDOW_KEYS } from './graphParts.ts';
import { short, table } from './spread.ts';

/** An event of the profile. Times are in microseconds. */
export interface ProfileEvent {
  cat: string;
  name: string;
  ts: number;
  dur: number;
  args?: {
    op_name?: string;
    input_type_shape?: Record<string, number[]>[];
    output_type_shape?: Record<string, number[]>[];
  };
}

interface ProfileRow {
  part: string;
  op: string;
  /** Shape of the first output. */
  shape: string;
  /** Milliseconds of all such nodes in one step. */
  ms: number;
  /** Number of such nodes in one step. */
  count: number;
}

export interface StepProfile {
  name: string;
  steps: number;
  /** Milliseconds per step: of the call from JavaScript, of onnxruntime's part of the call, and of its operators. */
  callMs: number;
  runMs: number;
  operatorsMs: number;
  rows: ProfileRow[];
  /** GB/s of the best scan, measured just before and after the profile. */
  bandwidth?: number;
  /** Milliseconds to pass feeds and outputs, without the profiler. Results from before 2026-11-23 do not have it. */
  crossingMs?: number;
}

/** Name of the profile of one token. */
export const oneToken = (context: string | number = ''): string => `one token, context ${context}`;

/** Name of the profile of several sequences with different texts. */
export const tokensTogether = (context: string | number, count: string | number): string =>
  `${count} sequences, context ${context} each`;

const KERNEL = /_kernel_time$/;

function outputShape({ args }: ProfileEvent): number[] {
  return Object.values(args?.output_type_shape?.[0] ?? {})[0] ?? [];
}

/**
 * Number of columns of the widest input or output tensor that is split by head. Ignores matrices that hold all heads
 * side by side, because they may be as wide as a window.
 */
function columns({ args }: ProfileEvent): number {
  const shapes = [...(args?.input_type_shape ?? []), ...(args?.output_type_shape ?? [])].map(
    (tensor) => Object.values(tensor)[0] ?? [],
  );
  return Math.max(0, ...shapes.filter(({ length }) => length > 2).map((shape) => shape.at(-1)!));
}

/**
 * @param callMs milliseconds of each step. They match the last runs of the profile; earlier runs were warm-up.
 * @param parts part by node name. Nodes that the runtime has inserted are not in it.
 */
export function profileOf(
  name: string,
  events: readonly ProfileEvent[],
  callMs: readonly number[],
  parts: ReadonlyMap<string, string>,
): StepProfile {
  const runs = events.filter((event) => event.name === 'model_run').slice(-callMs.length);
  if (runs.length < callMs.length) throw new Error(`The profile has ${runs.length} runs; ${callMs.length} were made.`);
  const from = Math.min(...runs.map(({ ts }) => ts));
  const steps = runs.length;
  // The time of a node with an inner graph is the time of the inner nodes, which have their own events.
  const kernels = events.filter(
    (event) =>
      event.cat === 'Node' && KERNEL.test(event.name) && !NESTING.has(event.args?.op_name ?? '') && event.ts >= from,
  );
  const knownPart = (event: ProfileEvent): string =>
    parts.get(event.name.replace(KERNEL, '')) ?? 'put in by the runtime';
  const poolSlots = Math.max(
    ...kernels.map((event) => (knownPart(event) === WINDOW_KEYS ? (outputShape(event).at(-1) ?? 0) : 0)),
  );
  const rows = new Map<string, ProfileRow>();
  let operatorsMs = 0;
  for (const event of kernels) {
    const known = knownPart(event);
    const dimensions = outputShape(event);
    const part =
      known === PASSES
        ? `${known} ${poolSlots > 0 && columns(event) >= poolSlots ? 'over the window' : 'over the new rows'}`
        : known;
    const op = event.args?.op_name ?? '?';
    const shape = dimensions.join('×');
    const key = `${part}|${op}|${shape}`;
    const row = rows.get(key) ?? { part, op, shape, ms: 0, count: 0 };
    rows.set(key, row);
    row.ms += event.dur / 1000 / steps;
    row.count += 1 / steps;
    operatorsMs += event.dur / 1000 / steps;
  }
  const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
  return {
    name,
    steps,
    callMs: mean(callMs),
    runMs: mean(runs.map(({ dur }) => dur / 1000)),
    operatorsMs,
    rows: [...rows.values()].sort((a, b) => b.ms - a.ms),
  };
}

/** Milliseconds of the products with weights only. */
export function linearMs({ rows }: StepProfile): number {
  return rows.reduce((sum, { part, ms }) => sum + (part.startsWith(LINEAR_PREFIX) ? ms : 0), 0);
}

export function byPart({ rows }: StepProfile): { part: string; ms: number; count: number }[] {
  const parts = new Map<string, { part: string; ms: number; count: number }>();
  for (const { part, ms, count } of rows) {
    const sum = parts.get(part) ?? { part, ms: 0, count: 0 };
    parts.set(part, { part, ms: sum.ms + ms, count: sum.count + count });
  }
  return [...parts.values()].sort((a, b) => b.ms - a.ms);
}

/** @param withoutMs milliseconds of the call without the profiler, if measured. */
export function profileReport(profile: StepProfile, withoutMs?: number, mostOperators = 25): string {
  const { name, steps, callMs, runMs, operatorsMs, rows, crossingMs } = profile;
  const percent = (ms: number): string => `${((100 * ms) / callMs).toFixed(1)}%`;
  const outside = table(
    ['', 'ms', 'of the call'],
    [
      ...(withoutMs === undefined
        ? []
        : [['call from JavaScript, nothing profiled', short(withoutMs), percent(withoutMs)]]),
      ['call from JavaScript', short(callMs), percent(callMs)],
      ['operators', short(operatorsMs), percent(operatorsMs)],
      ['between the operators, profiling included', short(runMs - operatorsMs), percent(runMs - operatorsMs)],
      ['feeds and outputs across the border', short(callMs - runMs), percent(callMs - runMs)],
      ...(crossingMs === undefined
        ? []
        : [['the same by themselves, nothing profiled', short(crossingMs), percent(crossingMs)]]),
    ],
  );
  const parts = table(
    ['part', 'ms', 'of the call', 'nodes'],
    byPart(profile).map(({ part, ms, count }) => [part, short(ms), percent(ms), Math.round(count)]),
  );
  const operators = table(
    ['operator', 'output', 'part', 'ms', 'nodes'],
    rows
      .slice(0, mostOperators)
      .map(({ op, shape, part, ms, count }) => [op, shape, part, short(ms), Math.round(count)]),
  );
  return [`### Profile: ${name} (mean of ${steps} steps)`, outside, parts, operators].join('\n\n');
}
