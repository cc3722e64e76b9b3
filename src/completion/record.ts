/** What happened to a completion: one line of the log, and the page of `Kvasir: Explain Last Completion`. Pure. */
import type { Timings, Usage } from '../../engine/protocol/tasks.ts';
import type { Speech } from '../format.ts';
import type * as vscode from '../vscode.ts';
import type { Log } from '../log.ts';

/** Why nothing was returned to the editor. */
export type SilentReason =
  | 'automatic completions are off (kvasir.completion.enable)'
  | 'completions are snoozed'
  | 'the machine runs on battery (kvasir.completion.pauseOnBattery)'
  | 'the language is not in kvasir.completion.languages'
  | 'the file matches kvasir.completion.exclude'
  | 'this kind of document gets no completions'
  | 'the file is too large'
  | 'the engine is down'
  | 'superseded by further typing'
  | 'not ready before the editor stops waiting; shown when ready'
  | 'the model has nothing to add here'
  | 'the confidence of the model is too low here'
  | 'the selected suggestion changes text before the cursor'
  | 'the model cannot complete'
  | 'the request failed';

export interface CompletionRecord {
  /** Path and position, 1-based as the editor shows it. */
  place: string;
  at: Date;
  trigger: 'typing' | 'explicit' | 'refresh';
  source?:
    | 'typed as suggested'
    | 'a past completion'
    | 'the running request'
    | 'computed ahead'
    | 'engine'
    | 'engine, first part';
  reason?: SilentReason;
  detail?: string;
  shown?: string;
  /** Number of candidates returned, including the first. */
  numCandidates?: number;
  accepted?: boolean;
  waitedMs: number;
  totalMs: number;
  usage?: Usage;
  timings?: Timings;
  diagnostics: string[];
}

/** One log line. People send logs to others, so the text is counted and not quoted. */
export function logLine(record: CompletionRecord): string {
  const shown = record.shown ?? '';
  const what = record.reason
    ? `nothing shown: ${record.reason}${record.detail ? ` (${record.detail})` : ''}`
    : `${shown.length} characters, ${shown.split('\n').length} lines from ${record.source}` +
      ((record.numCandidates ?? 1) > 1 ? `, one of ${record.numCandidates}` : '');
  const cost = record.usage ? `; ${record.usage.cachedTokens} of ${record.usage.promptTokens} tokens reused` : '';
  return `completion at ${record.place} (${record.trigger}): ${what}; ${Math.round(record.totalMs)} ms${cost}`;
}

/** A Markdown page in the user's language. */
export function explain(record: CompletionRecord | undefined, { t, numbers }: Speech): string {
  const title = `# ${t('Last completion')}`;
  if (!record) return `${title}\n\n${t('No completion has been requested since Kvasir started.')}\n`;
  const trigger = {
    explicit: t('requested by hand'),
    typing: t('after typing'),
    refresh: t('when a late answer was ready'),
  }[record.trigger];
  const lines = [title, ''];
  const note = (text: string) => lines.push(`- ${text}`);
  note(t('Where: {0}', `\`${record.place}\``));
  note(t('When: {0}, {1}', record.at.toLocaleTimeString(numbers.language), trigger));
  if (record.reason)
    note(`**${t('Nothing was shown: {0}.', t(record.reason))}**${record.detail ? ` ${record.detail}` : ''}`);
  else {
    const source = t('Returned to the editor from: {0}', t(record.source ?? ''));
    note(record.accepted ? `${source}; ${t('accepted')}` : source);
  }
  if ((record.numCandidates ?? 1) > 1) note(t('Candidates: {0}', record.numCandidates ?? 1));
  note(
    t(
      'Time: {0} ms; {1} ms of it waiting for a pause in typing',
      numbers.count(record.totalMs),
      numbers.count(record.waitedMs),
    ),
  );
  const { timings, usage } = record;
  if (timings)
    note(
      t(
        'Engine: {0} ms queued, first token after {1} ms, {2} ms for each further token',
        numbers.count(timings.queueMs),
        numbers.count(timings.ttftMs),
        numbers.decimal(timings.tpotMs),
      ),
    );
  if (usage)
    note(
      t(
        'Prompt: {0} tokens, {1} of them reused from the cache, {2} from the file block; {3} tokens written',
        numbers.count(usage.promptTokens),
        numbers.count(usage.cachedTokens),
        numbers.count(usage.blockTokens),
        numbers.count(usage.completionTokens),
      ),
    );
  if (usage?.shiftedTokens)
    note(
      t(
        'Approximated: {0} of the reused tokens were computed before an edit above them (kvasir.cache.reuseShifted)',
        numbers.count(usage.shiftedTokens),
      ),
    );
  for (const diagnostic of record.diagnostics) note(t('Note: {0}', diagnostic));
  if (record.shown) lines.push('', ...fenced(record.shown));
  return `${lines.join('\n')}\n`;
}

/** A code fence longer than any in the text. */
function fenced(text: string): string[] {
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length + 1)));
  return [fence, text, fence];
}

/** Reasons that stay the same from key to key. Each is logged once per document. */
const STEADY: ReadonlySet<SilentReason> = new Set<SilentReason>([
  'automatic completions are off (kvasir.completion.enable)',
  'completions are snoozed',
  'the machine runs on battery (kvasir.completion.pauseOnBattery)',
  'the language is not in kvasir.completion.languages',
  'the file matches kvasir.completion.exclude',
  'this kind of document gets no completions',
  'the file is too large',
  'the engine is down',
  'the model cannot complete',
]);

/** Writes one log line per completion. Does not repeat reasons that stay the same from key to key. */
export class CompletionLog {
  readonly #log: Log;
  /** The last steady reason that was logged. */
  readonly #told = new WeakMap<vscode.TextDocument, SilentReason>();

  constructor(log: Log) {
    this.#log = log;
  }

  write(document: vscode.TextDocument, record: CompletionRecord): void {
    const { reason } = record;
    const steady = reason !== undefined && STEADY.has(reason);
    if (reason === 'superseded by further typing' || (steady && this.#told.get(document) === reason)) {
      this.#log.debug(logLine(record));
      return;
    }
    if (steady) this.#told.set(document, reason);
    else this.#told.delete(document);
    this.#log.info(logLine(record));
  }

  accepted(): void {
    this.#log.info('completion accepted');
  }
}
