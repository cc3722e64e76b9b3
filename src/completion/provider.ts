/**
 * Ghost text. Answers from past completions where they still hold, else asks the engine after a pause in typing, and
 * returns what there is before the editor stops waiting; the rest is shown when it is ready. Says in the log why it
 * returns nothing. The text itself (how many lines, where it is cut) is the engine's.
 */
import * as vscode from '../vscode.ts';
import type { Settings } from '../config.ts';
import type { Done } from '../connection.ts';
import type { DocumentMirror } from '../documentMirror.ts';
import type { EngineClient } from '../engineClient.ts';
import type { Log } from '../log.ts';
import { CompletionCache, type Place, withLineEnds } from './cache.ts';
import { excluded } from './filter.ts';
import { type CompletionRecord, logLine, type SilentReason } from './record.ts';
import { extendSelection } from './selection.ts';
import { DEADLINE_MS, EXPLICIT_DEADLINE_MS, silence, Trigger } from './trigger.ts';

export const ACCEPTED_COMMAND = 'kvasir.completionAccepted';

/** One request to the engine, which may outlive the editor's question for it. */
interface Run {
  place: Place;
  version: number;
  abort: AbortController;
  /** Questions of the editor that wait for it; cancelling the last of them aborts it. */
  numWaiting: number;
  /** What has been decoded so far. */
  text: string;
  ended: Promise<Done>;
}

export class CompletionProvider implements vscode.InlineCompletionItemProvider {
  readonly #client: EngineClient;
  readonly #mirror: DocumentMirror;
  readonly #settings: Settings;
  readonly #log: Log;
  readonly #cache = new CompletionCache();
  readonly #trigger = new Trigger();
  #run: Run | null = null;
  /** Set while we ourselves make the editor ask again. */
  #refreshing: Place | null = null;
  last: CompletionRecord | undefined;

  constructor(client: EngineClient, mirror: DocumentMirror, settings: Settings, log: Log) {
    this.#client = client;
    this.#mirror = mirror;
    this.#settings = settings;
    this.#log = log;
  }

  async provideInlineCompletionItems(document: vscode.TextDocument, position: vscode.Position, context: vscode.InlineCompletionContext, token: vscode.CancellationToken): Promise<vscode.InlineCompletionItem[]> {
    const started = performance.now();
    const place: Place = { docId: document.uri.toString(), text: document.getText(), offset: document.offsetAt(position) };
    const refresh = this.#refreshing !== null && samePlace(this.#refreshing, place);
    const explicit = !refresh && context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke;
    const record: CompletionRecord = {
      place: `${vscode.workspace.asRelativePath(document.uri)}:${position.line + 1}:${position.character + 1}`,
      at: new Date(),
      trigger: refresh ? 'refresh' : explicit ? 'explicit' : 'typing',
      waitedMs: 0,
      totalMs: 0,
      diagnostics: [],
    };
    // The late answer's cost stays with it.
    if (refresh && this.last) Object.assign(record, { usage: this.last.usage, timings: this.last.timings, diagnostics: this.last.diagnostics });
    try {
      const insert = await this.#find(document, place, position.line, record, started, token);
      return insert === undefined ? [] : this.#items(document, place, position, insert, context.selectedCompletionInfo, record);
    } catch (error) {
      record.detail = error instanceof Error ? error.message : String(error);
      record.reason = 'the request failed';
      return [];
    } finally {
      record.totalMs = performance.now() - started;
      this.last = record;
      if (record.reason === 'superseded by further typing') this.#log.debug(logLine(record));
      else this.#log.info(logLine(record));
    }
  }

  accepted(): void {
    if (this.last) this.last.accepted = true;
    this.#log.info('completion accepted');
  }

  /** The next completion comes from the engine. */
  forget(): void {
    this.#cache.clear();
  }

  dispose(): void {
    this.#run?.abort.abort();
    this.#cache.clear();
  }

  /** The text to insert at `place`; undefined after noting the reason in `record`. */
  async #find(document: vscode.TextDocument, place: Place, line: number, record: CompletionRecord, started: number, token: vscode.CancellationToken): Promise<string | undefined> {
    const silent = (reason: SilentReason): undefined => {
      record.reason = reason;
      return undefined;
    };
    const settings = this.#settings.current.completion;
    const explicit = record.trigger === 'explicit';
    if (!settings.enable && !explicit) return silent('automatic completions are off (kvasir.completion.enable)');
    const reason = excluded(document, settings);
    if (reason) return silent(reason);

    const known = this.#cache.lookup(place);
    if (known !== undefined) {
      record.source = 'typed as suggested';
      return known;
    }
    if (record.trigger === 'refresh') return silent('the answer came after the cursor had moved');
    const { state } = this.#client;
    if (state.kind === 'failed' && !explicit) {
      record.detail = state.message;
      return silent('the engine is down');
    }
    if (state.kind === 'ready' && !state.model.canComplete) return silent('the model cannot complete');

    const cancel = new AbortController();
    const subscription = token.onCancellationRequested(() => cancel.abort());
    try {
      if (!this.#run || this.#run.abort.signal.aborted || !samePlace(this.#run.place, place)) {
        this.#run?.abort.abort();
        if (!(await silence(token.isCancellationRequested ? 0 : this.#trigger.delay(place.docId, line, settings.debounceMs, explicit), cancel.signal)) || token.isCancellationRequested) {
          return silent('superseded by further typing');
        }
        record.waitedMs = performance.now() - started;
        this.#run = this.#start(document, place, settings.maxTokens);
      }
      const run = this.#run;
      run.numWaiting++;
      // Asked for by hand, it may take its time: the editor does not ask again at the same place, so an early nothing would be final.
      const deadline = explicit ? EXPLICIT_DEADLINE_MS : DEADLINE_MS;
      const outcome = await Promise.race([run.ended, silence(deadline - (performance.now() - started), cancel.signal)]).finally(() => run.numWaiting--);
      if (outcome === false) {
        if (run.numWaiting === 0) run.abort.abort();
        return silent('superseded by further typing');
      }
      if (outcome === true) return this.#late(run, document, record) ?? silent('nothing decoded before the editor stops waiting; shown when it is ready');
      record.usage = outcome.usage;
      record.timings = outcome.timings;
      record.diagnostics = outcome.diagnostics;
      if (outcome.finishReason === 'abort') return silent('superseded by further typing');
      if (!outcome.text) return silent('the model has nothing to add here');
      record.source = 'engine';
      return withLineEnds(outcome.text, lineEnd(document));
    } finally {
      subscription.dispose();
    }
  }

  #start(document: vscode.TextDocument, place: Place, maxTokens: number): Run {
    const abort = new AbortController();
    const run: Run = { place, version: document.version, abort, numWaiting: 0, text: '', ended: Promise.resolve(null as never) };
    run.ended = this.#client
      .generate({
        task: () => ({ kind: 'complete', docId: this.#mirror.sync(document), offset: place.offset }),
        priority: 'completion',
        ...(maxTokens ? { sampling: { maxTokens } } : {}),
        onChunk: (text) => {
          run.text += text;
        },
        signal: abort.signal,
      })
      .then((done) => {
        if (done.finishReason !== 'abort' && done.text) this.#cache.add({ ...place, insert: withLineEnds(done.text, lineEnd(document)) });
        return done;
      })
      .finally(() => {
        if (this.#run === run) this.#run = null;
        changes.dispose();
      });
    // While the model loads, or decodes past the editor's patience, nobody else notices that the text has changed.
    const changes = vscode.workspace.onDidChangeTextDocument((event) => {
      if (event.document === document && event.document.version !== run.version) abort.abort();
    });
    // Its failure is reported where it is awaited, and in any case by the engine's state.
    run.ended.catch(() => {});
    return run;
  }

  /** The first part of a run that goes on; the whole of it is shown when it has ended, if nothing has changed by then. */
  #late(run: Run, document: vscode.TextDocument, record: CompletionRecord): string | undefined {
    void run.ended.then(
      async (done) => {
        const editor = vscode.window.activeTextEditor;
        if (done.finishReason === 'abort' || !done.text || editor?.document !== document || document.version !== run.version || document.offsetAt(editor.selection.active) !== run.place.offset) return;
        record.usage = done.usage;
        record.timings = done.timings;
        record.diagnostics = done.diagnostics;
        this.#refreshing = run.place;
        try {
          await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger');
        } finally {
          this.#refreshing = null;
        }
      },
      () => {},
    );
    if (!run.text.trim()) return undefined;
    record.source = 'engine, first part';
    return withLineEnds(run.text, lineEnd(document));
  }

  #items(document: vscode.TextDocument, place: Place, position: vscode.Position, insert: string, selected: vscode.SelectedCompletionInfo | undefined, record: CompletionRecord): vscode.InlineCompletionItem[] {
    const command = { command: ACCEPTED_COMMAND, title: 'Kvasir' };
    if (!selected) {
      record.shown = insert;
      return [{ insertText: insert, range: new vscode.Range(position, position), command }];
    }
    const range = selected.range;
    const text = extendSelection(place.text, place.offset, { start: document.offsetAt(range.start), end: document.offsetAt(range.end), text: selected.text }, insert);
    if (text === undefined) {
      record.reason = 'it does not go on as the selected suggestion does';
      return [];
    }
    record.shown = text;
    return [{ insertText: text, range, command }];
  }
}

function samePlace(a: Place, b: Place): boolean {
  return a.docId === b.docId && a.offset === b.offset && a.text === b.text;
}

function lineEnd(document: vscode.TextDocument): '\n' | '\r\n' {
  return document.eol === vscode.EndOfLine.CRLF ? '\r\n' : '\n';
}
