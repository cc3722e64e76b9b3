/**
 * The last steps in a ring, and their rendering in the Chrome trace event format (for Perfetto and chrome://tracing).
 * Holds times and counts only, never a token or a text.
 */
import type { Lane } from '../model/batch.ts';
import type { Priority } from '../protocol/tasks.ts';

/** A sequence's part in a step. */
export interface TracedSpan {
  /** Place of the sequence in the order of arrival. */
  arrivalIndex: number;
  priority: Priority;
  arrivedAt: number;
  /** Start of the sequence's first step. */
  startedAt: number;
  startIndex: number;
  tokens: number;
  phase: 'prefill' | 'decode';
  /** Lane of the step graph. */
  lane: Lane;
}

/** Events of cache and scheduler since the start. */
interface TracedEvents {
  evictions: number;
  preemptions: number;
  promotions: number;
  demotions: number;
}

/** Times are milliseconds of the engine's clock, in order. */
export interface TracedStep {
  start: number;
  scheduled: number;
  run: number;
  end: number;
  spans: TracedSpan[];
  events: TracedEvents;
  poolBytes: number;
  storeBytes: number;
  waiting: number;
}

const KEPT_STEPS = 2000;
const NO_EVENTS: TracedEvents = { evictions: 0, preemptions: 0, promotions: 0, demotions: 0 };
/** Track numbers. */
const STEPS = 1;
const FIRST_LANE = 2;

export class StepTrace {
  readonly #steps: TracedStep[] = [];
  /** Index of the oldest step once the ring is full. */
  #next = 0;

  add(step: TracedStep): void {
    if (this.#steps.length < KEPT_STEPS) this.#steps.push(step);
    else this.#steps[this.#next] = step;
    this.#next = (this.#next + 1) % KEPT_STEPS;
  }

  /** Oldest first. */
  steps(): TracedStep[] {
    return this.#steps.length < KEPT_STEPS
      ? [...this.#steps]
      : [...this.#steps.slice(this.#next), ...this.#steps.slice(0, this.#next)];
  }
}

/**
 * JSON with one event per line. A step's phases lie within it. Each sequence has its own track while it runs. Its waits
 * (for its first step, and between two steps while others ran) are asynchronous events by class.
 */
export function chromeTrace(steps: readonly TracedStep[], about: Record<string, string | number>): string {
  const lost = waits(steps);
  const origin = Math.min(steps[0]?.start ?? 0, ...lost.map(({ from }) => from));
  const us = (ms: number): number => Math.round((ms - origin) * 1000);
  const lanes = new Lanes(steps);
  const events: object[] = [name('process_name', 0, 'Kvasir'), name('thread_name', STEPS, 'steps')];
  for (let lane = 0; lane < lanes.count; lane++)
    events.push(name('thread_name', FIRST_LANE + lane, `requests ${lane + 1}`));
  let before: TracedEvents | undefined;
  for (const step of steps) {
    const slice = (tid: number, title: string, start: number, end: number, args: object = {}): void => {
      events.push({ ph: 'X', pid: 1, tid, name: title, ts: us(start), dur: us(end) - us(start), args });
    };
    const tokens = step.spans.reduce((sum, span) => sum + span.tokens, 0);
    const since = difference(step.events, before ?? { ...NO_EVENTS, ...step.events });
    slice(STEPS, 'step', step.start, step.end, {
      tokens,
      sequences: step.spans.length,
      waiting: step.waiting,
      ...since,
    });
    slice(STEPS, 'schedule', step.start, step.scheduled);
    slice(STEPS, 'run', step.scheduled, step.run, { tokens });
    slice(STEPS, 'sample', step.run, step.end);
    for (const [title, count] of Object.entries(since))
      if (count > 0)
        events.push({ ph: 'i', pid: 1, tid: STEPS, s: 't', name: title, ts: us(step.start), args: { count } });
    for (const span of step.spans) {
      const { arrivalIndex, priority, phase, lane, startIndex } = span;
      slice(FIRST_LANE + lanes.of(arrivalIndex), `${priority} ${arrivalIndex}: ${phase}`, step.scheduled, step.run, {
        class: priority,
        request: arrivalIndex,
        phase,
        lane,
        tokens: span.tokens,
        startIndex,
      });
    }
    events.push({
      ph: 'C',
      pid: 1,
      name: 'KV bytes',
      ts: us(step.end),
      args: { pool: step.poolBytes, store: step.storeBytes },
    });
    events.push({ ph: 'C', pid: 1, name: 'batch', ts: us(step.end), args: { sequences: step.spans.length, tokens } });
    const inPrefillLane = step.spans.reduce((sum, span) => sum + (span.lane === 'prefill' ? span.tokens : 0), 0);
    events.push({
      ph: 'C',
      pid: 1,
      name: 'tokens by lane',
      ts: us(step.end),
      args: { pool: tokens - inPrefillLane, prefill: inPrefillLane },
    });
    before = step.events;
  }
  for (const { span, from, to, reason } of lost) {
    const ends = { cat: 'waits', pid: 1, tid: STEPS, id: span.arrivalIndex, name: `${span.priority} waits` };
    events.push(
      { ...ends, ph: 'b', ts: us(from), args: { request: span.arrivalIndex, class: span.priority, reason } },
      { ...ends, ph: 'e', ts: us(to) },
    );
  }
  const lines = events.map((event) => JSON.stringify(event)).join(',\n');
  return `{"displayTimeUnit":"ms",\n"otherData":${JSON.stringify(about)},\n"traceEvents":[\n${lines}\n]}\n`;
}

interface Wait {
  span: TracedSpan;
  from: number;
  to: number;
  /** `queue`: for its first step; `passed over`: it had begun, and steps ran without it. */
  reason: 'queue' | 'passed over';
}

/** The waits that ended within these steps. */
function waits(steps: readonly TracedStep[]): Wait[] {
  const found: Wait[] = [];
  const lastStep = new Map<number, number>();
  for (const [i, { start, spans }] of steps.entries()) {
    for (const span of spans) {
      const last = lastStep.get(span.arrivalIndex);
      if (last === undefined) {
        // For a sequence that began before the oldest step the wait lies outside.
        if (span.startedAt >= steps[0]!.start && start > span.arrivedAt)
          found.push({ span, from: span.arrivedAt, to: start, reason: 'queue' });
      } else if (last < i - 1) found.push({ span, from: steps[last]!.end, to: start, reason: 'passed over' });
      lastStep.set(span.arrivalIndex, i);
    }
  }
  return found;
}

function name(ph: 'process_name' | 'thread_name', tid: number, text: string): object {
  return { ph: 'M', pid: 1, tid, name: ph, args: { name: text } };
}

function difference(now: TracedEvents, before: TracedEvents): TracedEvents {
  return {
    evictions: now.evictions - before.evictions,
    preemptions: now.preemptions - before.preemptions,
    promotions: now.promotions - before.promotions,
    demotions: now.demotions - before.demotions,
  };
}

/** Gives each sequence the lowest track that is free from its first step to its last. */
class Lanes {
  count = 0;
  readonly #lanes = new Map<number, number>();

  constructor(steps: readonly TracedStep[]) {
    const lastStep = new Map<number, number>();
    for (const [i, { spans }] of steps.entries()) for (const { arrivalIndex } of spans) lastStep.set(arrivalIndex, i);
    /** By lane: the last step of the sequence on it. */
    const busyUntil: number[] = [];
    for (const [i, { spans }] of steps.entries()) {
      for (const { arrivalIndex } of spans) {
        if (this.#lanes.has(arrivalIndex)) continue;
        const free = busyUntil.findIndex((until) => until < i);
        const lane = free < 0 ? busyUntil.length : free;
        busyUntil[lane] = lastStep.get(arrivalIndex)!;
        this.#lanes.set(arrivalIndex, lane);
      }
    }
    this.count = busyUntil.length;
  }

  of(arrivalIndex: number): number {
    return this.#lanes.get(arrivalIndex)!;
  }
}
