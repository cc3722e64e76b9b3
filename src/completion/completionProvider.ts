/**
 * Ghost text for the editor: takes its question, asks the finder for a text and builds items from it. Logs why nothing
 * is returned. Does not decide what the text is (lines, cuts): the engine does.
 */
import * as vscode from '../vscode.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineClient } from '../client/engineClient.ts';
import type { Log } from '../log.ts';
import { Ahead } from './ahead.ts';
import { Alternatives, otherInsertions } from './alternatives.ts';
import { Availability } from './availability.ts';
import { Battery } from './battery.ts';
import { CompletionCache } from './completionCache.ts';
import { CompletionLog } from './completionLog.ts';
import { Finder, type Found, type Question } from './finder.ts';
import { LateDisplay } from './lateDisplay.ts';
import { type Place, placeAfter } from './place.ts';
import type { CompletionRecord, SilentReason } from './record.ts';
import { type Beside, CompletionRequests } from './completionRequests.ts';
import { addedBy } from './selection.ts';
import type { Snooze } from './snooze.ts';
import { Trigger } from './trigger.ts';
import { Warmup } from './warmup.ts';

export const ACCEPTED_COMMAND = 'kvasir.completionAccepted';

/** The classes that a provider is built from. A benchmark replaces one to measure what it contributes. */
export interface CompletionClasses {
  Cache: new () => CompletionCache;
  Requests: new (...args: ConstructorParameters<typeof CompletionRequests>) => CompletionRequests;
  Ahead: new (...args: ConstructorParameters<typeof Ahead>) => Pick<Ahead, 'schedule' | 'dispose'>;
  Warmup: new (...args: ConstructorParameters<typeof Warmup>) => Pick<Warmup, 'typed' | 'dispose'>;
}

const CLASSES: CompletionClasses = { Cache: CompletionCache, Requests: CompletionRequests, Ahead, Warmup };

export interface CompletionParts {
  client: EngineClient;
  mirror: DocumentMirror;
  settings: Settings;
  log: Log;
  snooze: Snooze;
  beside: Beside;
  classes?: Partial<CompletionClasses>;
}

export class CompletionProvider implements vscode.InlineCompletionItemProvider {
  readonly #client: EngineClient;
  readonly #log: CompletionLog;
  readonly #availability: Availability;
  readonly #cache: CompletionCache;
  readonly #late = new LateDisplay();
  readonly #requests: CompletionRequests;
  readonly #finder: Finder;
  readonly #alternatives: Alternatives;
  readonly #ahead: Pick<Ahead, 'schedule' | 'dispose'>;
  readonly #warmup: Pick<Warmup, 'typed' | 'dispose'>;
  readonly #disposed = new AbortController();
  last: CompletionRecord | undefined;

  constructor({ client, mirror, settings, log, snooze, beside, classes = {} }: CompletionParts) {
    const { Cache, Requests, Ahead, Warmup } = { ...CLASSES, ...classes };
    const battery = new Battery(client);
    this.#client = client;
    this.#log = new CompletionLog(log);
    this.#availability = new Availability(client, settings, snooze, battery);
    this.#cache = new Cache();
    this.#requests = new Requests(client, mirror, settings, this.#cache, beside);
    this.#finder = new Finder(this.#requests, this.#cache, this.#late, new Trigger(), settings);
    this.#alternatives = new Alternatives(this.#finder, this.#requests, this.#cache);
    this.#ahead = new Ahead(this.#requests, this.#cache, battery);
    this.#warmup = new Warmup(this.#requests, client, this.#availability, battery);
  }

  async provideInlineCompletionItems(
    document: vscode.TextDocument,
    position: vscode.Position,
    context: vscode.InlineCompletionContext,
    token: vscode.CancellationToken,
  ): Promise<vscode.InlineCompletionItem[]> {
    const record = this.#record(document, position, context);
    const started = performance.now();
    if (record.trigger === 'typing') this.#warmup.typed();
    const cancel = new AbortController();
    const end = () => cancel.abort();
    const subscription = token.onCancellationRequested(end);
    this.#disposed.signal.addEventListener('abort', end);
    if (token.isCancellationRequested || this.#disposed.signal.aborted) end();
    try {
      const { version } = document;
      record.reason = await this.#availability.refusal(document, record.trigger);
      if (record.reason) {
        const { state } = this.#client;
        if (record.reason === 'the engine is down' && state.kind === 'failed') record.detail = state.message;
        return [];
      }
      if (document.version !== version) {
        record.reason = 'superseded by further typing';
        return [];
      }
      const question = this.#question(document, position, context, started, cancel.signal);
      if (typeof question === 'string') {
        record.reason = question;
        return [];
      }
      const found = await (record.trigger === 'explicit' ? this.#alternatives : this.#finder).find(question, record);
      if (typeof found === 'string' || document.version !== version) {
        record.reason = typeof found === 'string' ? found : 'superseded by further typing';
        return [];
      }
      return this.#items(question, found, position, context.selectedCompletionInfo, record);
    } catch (error) {
      record.detail = error instanceof Error ? error.message : String(error);
      record.reason = 'the request failed';
      return [];
    } finally {
      subscription.dispose();
      this.#disposed.signal.removeEventListener('abort', end);
      record.totalMs = performance.now() - started;
      this.last = record;
      this.#log.write(document, record);
    }
  }

  accepted(): void {
    if (this.last) this.last.accepted = true;
    this.#log.accepted();
  }

  /** Forgets all completions. The next one comes from the engine. */
  forget(): void {
    this.#requests.abortAll();
    this.#cache.clear();
    this.#finder.show(undefined);
  }

  dispose(): void {
    this.#disposed.abort();
    this.#ahead.dispose();
    this.#warmup.dispose();
    this.#late.dispose();
    this.#requests.dispose();
    this.forget();
  }

  #record(
    document: vscode.TextDocument,
    position: vscode.Position,
    context: vscode.InlineCompletionContext,
  ): CompletionRecord {
    const refresh = this.#late.isRefresh({
      docId: document.uri.toString(),
      version: document.version,
      offset: document.offsetAt(position),
    });
    const trigger = refresh
      ? 'refresh'
      : context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke
        ? 'explicit'
        : 'typing';
    const place = `${vscode.workspace.asRelativePath(document.uri)}:${position.line + 1}:${position.character + 1}`;
    const { usage, timings, diagnostics = [] } = (refresh && this.last) || {};
    // A late answer keeps its cost.
    return { place, at: new Date(), trigger, waitedMs: 0, totalMs: 0, usage, timings, diagnostics };
  }

  #question(
    document: vscode.TextDocument,
    position: vscode.Position,
    { selectedCompletionInfo: selection }: vscode.InlineCompletionContext,
    started: number,
    signal: AbortSignal,
  ): Question | SilentReason {
    const origin: Place = {
      docId: document.uri.toString(),
      text: document.getText(),
      offset: document.offsetAt(position),
    };
    const selected = selection
      ? addedBy(
          {
            start: document.offsetAt(selection.range.start),
            end: document.offsetAt(selection.range.end),
            text: selection.text,
          },
          origin.text,
          origin.offset,
        )
      : '';
    if (selected === undefined) return 'the selected suggestion changes text before the cursor';
    return {
      document,
      version: document.version,
      line: position.line,
      origin,
      selected,
      place: placeAfter(origin, selected),
      started,
      signal,
    };
  }

  #items(
    question: Question,
    found: Found,
    position: vscode.Position,
    selection: vscode.SelectedCompletionInfo | undefined,
    record: CompletionRecord,
  ): vscode.InlineCompletionItem[] {
    const { document, origin, place } = question;
    const command = { command: ACCEPTED_COMMAND, title: 'Kvasir' };
    const insertions = [found.insertion, ...otherInsertions(found.completion, place, found.insertion)];
    const items = insertions.map(({ text, replaces }) => {
      const end = replaces === 0 ? position : document.positionAt(origin.offset + replaces);
      // The editor hides items that do not start with the suggestion selected in the list.
      return selection
        ? { insertText: selection.text + text, range: new vscode.Range(selection.range.start, end), command }
        : { insertText: text, range: new vscode.Range(position, end), command };
    });
    this.#finder.show(found.completion);
    record.shown = items[0]?.insertText;
    record.numCandidates = items.length;
    if (this.#availability.byItself && this.#cursors(document) === 1) this.#ahead.schedule(question, found);
    return items;
  }

  /** With several cursors the text after an acceptance is unknown, because the editor inserts at each of them. */
  #cursors(document: vscode.TextDocument): number {
    const editor = vscode.window.activeTextEditor;
    return editor?.document === document ? editor.selections.length : 1;
  }
}
