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
import { CompletionLog } from './completionLog.ts';
import { excluded } from './filter.ts';
import type { CompletionRecord, SilentReason } from './record.ts';
import { extendSelection } from './selection.ts';
import { DEADLINE_MS, EXPLICIT_DEADLINE_MS, silence, Trigger } from './trigger.ts';

export const ACCEPTED_COMMAND = 'kvasir.completionAccepted';

/** One request to the engine, which may outlive the editor's question for it. */
interface Run {
  place: Place;
  /** Of the document when it had `place.text`. */
  version: number;
  abort: AbortController;
  /** Questions of the editor that wait for it; cancelling the last of them aborts it. */
  numWaiting: number;
  /** What has been decoded so far. */
  text: string;
  /** Set when the editor has been answered before the end, to show the whole then; `returned` is what it got. */
  late?: { record: CompletionRecord; returned: string | undefined };
  ended: Promise<Done>;
}

/** Where the editor asks; its text is taken only when it is needed. */
interface Question {
  docId: string;
  version: number;
  offset: number;
}

export class CompletionProvider implements vscode.InlineCompletionItemProvider {
  readonly #client: EngineClient;
  readonly #mirror: DocumentMirror;
  readonly #settings: Settings;
  readonly #log: CompletionLog;
  readonly #cache = new CompletionCache();
  readonly #trigger = new Trigger();
  #run: Run | null = null;
  /** Set while we ourselves make the editor ask again. */
  #refreshing: Question | null = null;
  readonly #disposed = new AbortController();
  last: CompletionRecord | undefined;

  constructor(client: EngineClient, mirror: DocumentMirror, settings: Settings, log: Log) {
    this.#client = client;
    this.#mirror = mirror;
    this.#settings = settings;
    this.#log = new CompletionLog(log);
  }

  async provideInlineCompletionItems(document: vscode.TextDocument, position: vscode.Position, context: vscode.InlineCompletionContext, token: vscode.CancellationToken): Promise<vscode.InlineCompletionItem[]> {
    const started = performance.now();
    const question: Question = { docId: document.uri.toString(), version: document.version, offset: document.offsetAt(position) };
    const refresh = this.#refreshing !== null && sameQuestion(this.#refreshing, question);
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
      record.reason = this.#refusal(document, record);
      if (record.reason) return [];
      const place: Place = { docId: question.docId, text: document.getText(), offset: question.offset };
      const insert = await this.#find(document, place, question.version, position.line, record, started, token);
      return insert === undefined ? [] : this.#items(document, place, position, insert, context.selectedCompletionInfo, record);
    } catch (error) {
      record.detail = error instanceof Error ? error.message : String(error);
      record.reason = 'the request failed';
      return [];
    } finally {
      record.totalMs = performance.now() - started;
      this.last = record;
      this.#log.write(document, record);
    }
  }

  /** Why nothing is offered in this document, whatever its text. */
  #refusal(document: vscode.TextDocument, record: CompletionRecord): SilentReason | undefined {
    const settings = this.#settings.current.completion;
    if (!settings.enable && record.trigger === 'typing') return 'automatic completions are off (kvasir.completion.enable)';
    const reason = excluded(document, settings);
    if (reason) return reason;
    const { state } = this.#client;
    if (state.kind === 'ready' && !state.model.canComplete) return 'the model cannot complete';
    if (state.kind !== 'failed' || record.trigger === 'explicit') return undefined;
    record.detail = state.message;
    return 'the engine is down';
  }

  accepted(): void {
    if (this.last) this.last.accepted = true;
    this.#log.accepted();
  }

  /** The next completion comes from the engine. */
  forget(): void {
    this.#cache.clear();
  }

  dispose(): void {
    this.#disposed.abort();
    this.#run?.abort.abort();
    this.#cache.clear();
  }

  /** The text to insert at `place`; undefined after noting the reason in `record`. */
  async #find(document: vscode.TextDocument, place: Place, version: number, line: number, record: CompletionRecord, started: number, token: vscode.CancellationToken): Promise<string | undefined> {
    const silent = (reason: SilentReason): undefined => {
      record.reason = reason;
      return undefined;
    };
    const settings = this.#settings.current.completion;
    const explicit = record.trigger === 'explicit';
    const known = this.#cache.lookup(place);
    if (known !== undefined) {
      record.source = 'typed as suggested';
      return known;
    }
    if (record.trigger === 'refresh') return silent('the answer came after the cursor had moved');

    const cancel = new AbortController();
    const end = () => cancel.abort();
    const subscription = token.onCancellationRequested(end);
    this.#disposed.signal.addEventListener('abort', end);
    if (token.isCancellationRequested || this.#disposed.signal.aborted) end();
    try {
      if (!this.#run || this.#run.abort.signal.aborted || !samePlace(this.#run.place, place)) {
        this.#run?.abort.abort();
        const quiet = await silence(this.#trigger.delay(place.docId, line, settings.debounceMs, explicit), cancel.signal);
        // The editor does not always cancel: what would be computed now is another text's.
        if (!quiet || cancel.signal.aborted || document.version !== version || document.isClosed) return silent('superseded by further typing');
        record.waitedMs = performance.now() - started;
        this.#run = this.#start(document, place, version, settings.maxTokens);
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
      this.#disposed.signal.removeEventListener('abort', end);
    }
  }

  #start(document: vscode.TextDocument, place: Place, version: number, maxTokens: number): Run {
    const abort = new AbortController();
    const run: Run = { place, version, abort, numWaiting: 0, text: '', ended: Promise.resolve(null as never) };
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
    const returned = run.text.trim() ? withLineEnds(run.text, lineEnd(document)) : undefined;
    // One handler for a run, however often the editor asks; the last answer is the one that is on the screen.
    if (!run.late) void run.ended.then((done) => this.#refresh(run, document, done)).catch(() => {});
    run.late = { record, returned };
    if (returned !== undefined) record.source = 'engine, first part';
    return returned;
  }

  /** Makes the editor ask again, now that the whole is there, if that shows more than it has. */
  async #refresh(run: Run, document: vscode.TextDocument, done: Done): Promise<void> {
    const { late } = run;
    const editor = vscode.window.activeTextEditor;
    if (!late || done.finishReason === 'abort' || !done.text || editor?.document !== document || document.version !== run.version || document.offsetAt(editor.selection.active) !== run.place.offset) return;
    const { record, returned } = late;
    record.usage = done.usage;
    record.timings = done.timings;
    record.diagnostics = done.diagnostics;
    const whole = withLineEnds(done.text, lineEnd(document));
    if (returned !== undefined && (whole === returned || !whole.startsWith(returned))) return;
    this.#refreshing = { docId: run.place.docId, version: run.version, offset: run.place.offset };
    try {
      await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger');
    } finally {
      this.#refreshing = null;
    }
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

function sameQuestion(a: Question, b: Question): boolean {
  return a.docId === b.docId && a.version === b.version && a.offset === b.offset;
}

function samePlace(a: Place, b: Place): boolean {
  return a.docId === b.docId && a.offset === b.offset && a.text === b.text;
}

function lineEnd(document: vscode.TextDocument): '\n' | '\r\n' {
  return document.eol === vscode.EndOfLine.CRLF ? '\r\n' : '\n';
}
