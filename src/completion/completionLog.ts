/** Writes one log line per completion. Does not repeat reasons that stay the same from key to key. */
import type * as vscode from '../vscode.ts';
import type { Log } from '../log.ts';
import { type CompletionRecord, logLine, type SilentReason } from './record.ts';

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
