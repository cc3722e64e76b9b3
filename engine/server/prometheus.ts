/**
 * PURE: the engine's statistics in Prometheus' text exposition format, version 0.0.4, for a file that node_exporter's
 * textfile collector reads or for a look with one's own eyes. Numbers and fixed words only: no path, no text, no model name.
 */
import type { ClassTimes, EngineStats, Quantiles } from '../protocol/stats.ts';
import type { Priority } from '../protocol/tasks.ts';

type Labels = Record<string, string>;

interface Sample {
  /** Behind the metric's name: "_sum", "_count". */
  suffix?: string;
  labels?: Labels;
  value: number;
}

interface Metric {
  name: string;
  type: 'counter' | 'gauge' | 'summary';
  help: string;
  samples: Sample[];
}

const CLASSES: readonly Priority[] = ['completion', 'chat', 'summary', 'idle'];
const QUANTILES = { p50: '0.5', p95: '0.95', p99: '0.99' } as const;

/** Ends in a line feed. */
export function prometheusText(stats: Omit<EngineStats, 'model' | 'files' | 'tree'>): string {
  return metricsOf(stats).map(printMetric).join('');
}

function metricsOf(stats: Omit<EngineStats, 'model' | 'files' | 'tree'>): Metric[] {
  const { requests, tokens, events, memory } = stats;
  return [
    gauge(
      'requests',
      'Requests that are waiting or running now.',
      labelled('state', { waiting: requests.waiting, running: requests.running }),
    ),
    counter(
      'requests_total',
      'Sequences that have ended: a request for the summary of a folder, or for several answers, has one for each.',
      labelled('outcome', { done: requests.done, failed: requests.failed, aborted: requests.aborted }),
    ),
    times('queue_seconds', 'From arrival to the first step, or to the end without one.', stats.classes, 'queueMs'),
    times('time_to_first_token_seconds', 'From arrival to the first token.', stats.classes, 'ttftMs'),
    times('time_per_output_token_seconds', "A request's mean time per token after the first.", stats.classes, 'tpotMs'),
    times('step_seconds', 'Steps with a sequence of the class in them.', stats.classes, 'stepMs'),
    counter('steps_total', 'Steps.', [{ value: events.steps }]),
    counter('busy_seconds_total', 'Time in steps.', [{ value: stats.busyMs / 1000 }]),
    gauge('utilisation_ratio', 'Share of the last 10 seconds in which a step ran.', [{ value: stats.utilisation }]),
    gauge('batch_sequences', 'Mean sequences per step.', [{ value: stats.batchSequences }]),
    gauge('batch_tokens', 'Mean tokens per step.', [{ value: stats.batchTokens }]),
    counter('generated_tokens_total', 'Generated tokens.', [{ value: tokens.generated }]),
    gauge('generated_tokens_per_second', 'Generated tokens per second of step time, over the last 10 seconds.', [
      { value: stats.tokensPerSecond },
    ]),
    counter('prompt_tokens_total', 'Prompt tokens of requests that have ended.', [{ value: tokens.prompt }]),
    counter(
      'prompt_tokens_cached_total',
      'Those of them that were found in the cache: over prompt_tokens_total, the prefix hit rate.',
      [{ value: tokens.promptCached }],
    ),
    counter('prompt_tokens_from_disk_total', 'Prompt tokens that were read from the disk.', [
      { value: tokens.promptFromDisk },
    ]),
    counter(
      'prompt_tokens_computed_total',
      'Prompt tokens computed, for requests or ahead of time.',
      labelled('for', { requests: tokens.promptComputed, idle: tokens.idleComputed }),
    ),
    counter(
      'prompt_tokens_shifted_total',
      'Prompt tokens copied from where they stood before an edit, an approximation.',
      [{ value: tokens.promptShifted }],
    ),
    counter('draft_tokens_total', 'Tokens drafted by speculation.', [{ value: tokens.drafted }]),
    counter('draft_tokens_accepted_total', 'Those of them that were right: over draft_tokens_total, the acceptance.', [
      { value: tokens.accepted },
    ]),
    counter(
      'cache_events_total',
      'Runs dropped, moved into the pool, moved out of it; sequences that gave way.',
      labelled('event', {
        eviction: events.evictions,
        promotion: events.promotions,
        demotion: events.demotions,
        preemption: events.preemptions,
      }),
    ),
    gauge(
      'kv_bytes',
      'Bytes of K/V rows, and of the buffers of disk, codecs and measuring.',
      labelled('tier', {
        pool: stats.poolBytes,
        store: stats.storeBytes,
        scratch: stats.scratchBytes,
        buffers: stats.bufferBytes,
      }),
    ),
    gauge('kv_disk_bytes', 'Bytes of the cache on disk, of all models.', [{ value: stats.diskBytes }]),
    gauge('kv_disk_limit_bytes', 'Cap of these.', [{ value: stats.diskMaxBytes }]),
    gauge('kv_limit_bytes', 'PoolBudget of all of kv_bytes together.', [{ value: stats.maxBytes }]),
    gauge(
      'pool_slots',
      'Slots of the pool, one per token.',
      labelled('state', { free: stats.poolSlots.free, held: stats.poolSlots.held }),
    ),
    gauge('process_resident_bytes', 'Resident memory of the process that the engine runs in.', [
      { value: memory.processBytes },
    ]),
    gauge('machine_available_bytes', 'Memory of the machine that programs can still have.', [
      { value: memory.availableBytes },
    ]),
  ];
}

function counter(name: string, help: string, samples: Sample[]): Metric {
  return { name: `kvasir_${name}`, type: 'counter', help, samples };
}

function gauge(name: string, help: string, samples: Sample[]): Metric {
  return { name: `kvasir_${name}`, type: 'gauge', help, samples };
}

/** A summary for each class. Quantiles of nothing are NaN, as the format has it. */
function times(name: string, help: string, classes: Record<Priority, ClassTimes>, time: keyof ClassTimes): Metric {
  const samples = CLASSES.flatMap((priority): Sample[] => {
    const quantiles: Quantiles = classes[priority][time];
    const labels = { class: priority };
    return [
      ...(['p50', 'p95', 'p99'] as const).map((p) => ({
        labels: { ...labels, quantile: QUANTILES[p] },
        value: quantiles.count ? quantiles[p] / 1000 : Number.NaN,
      })),
      { suffix: '_sum', labels, value: quantiles.sum / 1000 },
      { suffix: '_count', labels, value: quantiles.count },
    ];
  });
  return { name: `kvasir_${name}`, type: 'summary', help, samples };
}

function labelled(label: string, values: Record<string, number>): Sample[] {
  return Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }));
}

function printMetric({ name, type, help, samples }: Metric): string {
  const lines = samples.map(({ suffix = '', labels = {}, value }) => {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}="${text}"`);
    return `${name}${suffix}${pairs.length ? `{${pairs.join(',')}}` : ''} ${Number.isNaN(value) ? 'NaN' : value}\n`;
  });
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}
