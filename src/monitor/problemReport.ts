/**
 * `Kvasir: Report Problem` as a Markdown page: versions, settings and statistics. Contains only versions, numbers and
 * fixed words, except for error messages, which `redact` cleans. In English, for the people who read it. Pure.
 */
import type { ClassTimes, EngineStats, ModelInfo, Quantiles } from '../../engine/protocol/stats.ts';
import type { CompletionRecord } from '../completion/record.ts';
import type { EngineState } from '../client/engineLifecycle.ts';
import { ENGLISH } from '../format.ts';

export interface ReportFacts {
  version: string;
  platform: string;
  node: string;
  /** Name and version, "desktop" or "web", remote kind if any. */
  editor: string;
  language: string;
  /** Whether `kvasir.model` is empty. */
  builtIn: boolean;
  state: EngineState;
  stats: EngineStats | null;
  /** Chrome trace JSON. */
  trace: string | null;
  /** Changed settings, by their full names. */
  settings: { name: string; value: unknown }[];
  problems: { at: Date; level: string; text: string }[];
  completion: CompletionRecord | undefined;
  /** Words that must not appear. */
  names: string[];
}

export function problemReport(facts: ReportFacts): string {
  const { state, stats, completion, names } = facts;
  const lines = [
    '# Kvasir: problem report',
    '',
    '<!-- This page holds no code, no file names and no paths. Read it before you send it; nothing has been sent. -->',
    '',
    '## What happened',
    '',
    '<!-- What did you do, what did you expect, what came instead? -->',
    '',
    '## Surroundings',
    '',
    `- Kvasir ${facts.version}, ${facts.platform}, Node ${facts.node}`,
    `- ${facts.editor}, language ${facts.language}`,
    `- Engine: ${describeState(state, names)}`,
    `- Model: ${describeModel(facts)}`,
    ...facts.settings.map(({ name, value }) => `- ${name}: ${describeSetting(name, value)}`),
    '',
    '## Engine',
    '',
    ...(stats ? describeStats(stats) : ['No model is loaded, so there are no figures.']),
    ...(facts.trace ? describeTrace(facts.trace) : []),
    '',
    '## Last completion',
    '',
    ...(completion ? describeCompletion(completion) : ['No completion has been requested.']),
    '',
    '## Last errors',
    '',
    ...(facts.problems.length
      ? facts.problems.map(
          ({ at, level, text }) => `- ${at.toISOString().slice(11, 19)} ${level}: ${redact(text, names)}`,
        )
      : ['None.']),
  ];
  return `${lines.join('\n')}\n`;
}

function describeState(state: EngineState, names: readonly string[]): string {
  switch (state.kind) {
    case 'starting':
      return `starting (${state.stage}, ${Math.round(state.fraction * 100)}%)`;
    case 'failed':
      return `failed: ${redact(state.message, names)}`;
    default:
      return state.kind;
  }
}

/** The name of a user's own model may be part of a path, so only its shape is given. */
function describeModel({ builtIn, state, stats }: ReportFacts): string {
  const kind = builtIn ? 'built-in' : 'custom';
  const model: ModelInfo | null = state.kind === 'ready' ? state.model : (stats?.model ?? null);
  if (!model) return `${kind}, not loaded`;
  const can = [model.canComplete && 'complete', model.canChat && 'chat', model.canEdit && 'edit'].filter(
    (word) => word !== false,
  );
  const facts = [
    kind,
    model.architecture,
    `${ENGLISH.count(model.parameters)} parameters`,
    `${ENGLISH.count(model.contextTokens)} tokens`,
    `weights ${model.precision} ${ENGLISH.bytes(model.residentBytes)}`,
    `KV ${model.kv} ${model.kvBytesPerToken} B a token`,
    `can ${can.join(', ') || 'nothing'}`,
  ];
  const load = `loaded in ${Math.round(model.loadMs)} ms${model.imported ? ' with an import' : ''}`;
  return `${facts.join(', ')}; ${load}`;
}

/**
 * Numbers, switches and fixed words are given as they are. Free text and lists may name files, so only the fact that
 * they changed is given.
 */
function describeSetting(name: string, value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (name === 'kvasir.engine.precision') return value === 'int4' ? 'int4' : 'int8';
  if (name === 'kvasir.model') return 'custom';
  return Array.isArray(value) ? `changed (${value.length} entries)` : 'changed';
}

function describeStats(stats: EngineStats): string[] {
  const { tokens, requests, events, stepMs, ttftMs, memory } = stats;
  const { bytes } = ENGLISH;
  return [
    `- Cache: ${bytes(stats.poolBytes)} pool, ${bytes(stats.storeBytes)} store, at most ${bytes(stats.maxBytes)}; ` +
      `cached files: ${stats.files.length}`,
    `- Requests: ${requests.waiting} waiting, ${requests.running} running, ${requests.done} done, ` +
      `${requests.failed} failed, ${requests.aborted} aborted`,
    `- Tokens: ${tokens.prompt} prompt, ${tokens.promptCached} of them cached, ` +
      `${tokens.idleComputed} ahead of time, ${tokens.generated} generated`,
    `- Steps: ${events.steps}; ms P50 ${stepMs.p50.toFixed(1)}, P95 ${stepMs.p95.toFixed(1)}, ` +
      `P99 ${stepMs.p99.toFixed(1)}; ${stats.batchTokens.toFixed(1)} tokens and ` +
      `${stats.batchSequences.toFixed(1)} sequences a step`,
    `- First token ms: P50 ${ttftMs.p50.toFixed(0)}, P95 ${ttftMs.p95.toFixed(0)}, P99 ${ttftMs.p99.toFixed(0)}`,
    ...Object.entries(stats.classes).flatMap(([name, times]) => describeTimes(name, times)),
    `- Busy: ${(stats.utilisation * 100).toFixed(0)}% of the last 10 s, ${(stats.busyMs / 1000).toFixed(0)} s in all`,
    ...(tokens.drafted ? [`- Drafts: ${tokens.accepted} of ${tokens.drafted} tokens accepted`] : []),
    `- Events: ${events.evictions} evictions, ${events.preemptions} preemptions, ` +
      `${events.promotions} promotions, ${events.demotions} demotions`,
    `- Memory: process ${bytes(memory.processBytes)}, ` +
      `machine ${bytes(memory.availableBytes)} of ${bytes(memory.totalBytes)} available`,
  ];
}

/** P50/P95/P99 of each class that had a request. */
function describeTimes(name: string, { queueMs, ttftMs, tpotMs }: ClassTimes): string[] {
  if (queueMs.count === 0) return [];
  const figures = ({ p50, p95, p99 }: Quantiles): string => [p50, p95, p99].map((ms) => ms.toFixed(0)).join('/');
  return [
    `- ${name}: ${queueMs.count} ended; ms P50/P95/P99: ${figures(queueMs)} queued, ` +
      `${figures(ttftMs)} to the first token, ${figures(tpotMs)} for each further one`,
  ];
}

/** Count and duration of each kind of event, by total time. */
function describeTrace(json: string): string[] {
  const sums = new Map<string, { count: number; micros: number }>();
  try {
    for (const { ph, name, dur } of (JSON.parse(json) as { traceEvents: { ph: string; name: string; dur?: number }[] })
      .traceEvents) {
      // Lanes are numbered; only their kinds matter here.
      const kind = name.replace(/[^a-zA-Z]+/g, ' ').trim();
      if (ph !== 'X' || dur === undefined || !kind) continue;
      const sum = sums.get(kind) ?? { count: 0, micros: 0 };
      sums.set(kind, { count: sum.count + 1, micros: sum.micros + dur });
    }
  } catch {
    return ['- Trace: not readable'];
  }
  const kinds = [...sums].sort(([, a], [, b]) => b.micros - a.micros).slice(0, 8);
  return kinds.length
    ? [
        `- Trace: ${kinds
          .map(([kind, { count, micros }]) => `${kind} ${count} times, ${(micros / 1000 / count).toFixed(1)} ms each`)
          .join('; ')}`,
      ]
    : [];
}

/** Without the place, the shown text and the notes, which may name files. */
function describeCompletion({
  trigger,
  reason,
  source,
  shown,
  accepted,
  waitedMs,
  totalMs,
  usage,
  timings,
}: CompletionRecord): string[] {
  return [
    reason
      ? `- ${trigger}; nothing shown: ${reason}`
      : `- ${trigger}; ${(shown ?? '').length} characters from ${source}${accepted ? ', accepted' : ''}`,
    `- ${Math.round(totalMs)} ms; ${Math.round(waitedMs)} ms of it waiting for a pause in typing`,
    ...(timings
      ? [
          `- Engine: ${timings.queueMs.toFixed(0)} ms queued, first token after ${timings.ttftMs.toFixed(0)} ms, ` +
            `${timings.tpotMs.toFixed(1)} ms for each further one`,
        ]
      : []),
    ...(usage
      ? [
          `- Prompt: ${usage.promptTokens} tokens, ${usage.cachedTokens} cached, ` +
            `${usage.blockTokens} of the file block` +
            (usage.shiftedTokens ? `, ${usage.shiftedTokens} approximated` : '') +
            `; ${usage.completionTokens} written`,
        ]
      : []),
  ];
}

/** File names that every model has. They tell nothing about the user. */
const MODEL_FILES = new Set([
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'kvasir.json',
  'chat_template.jinja',
  'model.safetensors',
  'model.safetensors.index.json',
]);

const SETTING = /^kvasir\.(?:[a-z]+\.)?[a-zA-Z]+$/;

/**
 * Removes everything that names a user's files from a message; in doubt it removes too much. `names` are known ones:
 * folders, open files, the user's home and login.
 */
export function redact(text: string, names: readonly string[] = []): string {
  let safe = text.replace(/\s+/g, ' ').trim();
  // Longest first: a file's path before its name.
  for (const name of [...names].filter((each) => each.length > 1).sort((a, b) => b.length - a.length))
    safe = safe.replaceAll(name, '<name>');
  // A path may contain spaces, so it ends where the sentence clearly continues, or not at all.
  safe = safe.replace(
    /(?:[A-Za-z]:[\\/]|\b[a-z][a-z+.-]*:\/\/|~[\\/]|\\\\|(?<![\w<])\/(?=[^\s/])).*?(?=[:;,"'`)](?:\s|$)|["'`]|$)/g,
    '<path>',
  );
  safe = safe.replace(/[^\s"'`()<>:;,]*[\\/][^\s"'`()<>:;,]*/g, '<path>');
  return safe.replace(/[\w$.@-]*\w\.[A-Za-z]\w{0,9}\b/g, (file) =>
    MODEL_FILES.has(file) || SETTING.test(file) || isNumber(file) ? file : '<file>',
  );
}

function isNumber(text: string): boolean {
  return /^\d+(\.\d+)*$/.test(text);
}
