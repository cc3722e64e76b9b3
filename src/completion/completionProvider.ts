/**
 * Ghost text for the editor: takes its question, asks the finder for a text and builds items from it. Logs why nothing
 * is returned. Does not decide what the text is (lines, cuts): the engine does.
 */
import { messageOf } from '../format.ts';
import * as vscode from '../vscode.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineClient } from '../client/engineClient.ts';
import type { Log } from '../log.ts';
import { Ahead, Warmup } from './ahead.ts';
import { Alternatives, otherInsertions } from './alternatives.ts';
import { Availability, Battery } from './availability.ts';
import { CompletionCache } from './completionCache.ts';
import { CompletionLog, type CompletionRecord, type SilentReason } from './record.ts';
import { Finder, type Found, type Question } from './finder.ts';
import { LateDisplay } from './lateDisplay.ts';
import { type Place, placeAfter, addedBy } from './place.ts';
import { CompletionRequests, type CrossFileContext } from './completionRequests.ts';
import type { Snooze } from './snooze.ts';
import { Trigger } from './trigger.ts';

export const ACCEPTED_COMMAND = 'kvasir.completionAccepted';
/** For the Escape key, while a text on the screen grows. */
export const DISMISS_COMMAND = 'kvasir.dismissCompletion';

/** What a provider works with. */
export interface CompletionServices {
  client: EngineClient;
  mirror: DocumentMirror;
  settings: Settings;
  log: Log;
  snooze: Snooze;
  crossFile: CrossFileContext;
}

/** The objects that a provider is composed of. */
export interface CompletionParts {
  availability: Availability;
  cache: CompletionCache;
  requests: CompletionRequests;
  ahead: Pick<Ahead, 'schedule' | 'dispose'>;
  warmup: Pick<Warmup, 'typed' | 'dispose'>;
}

export function createCompletionProvider(services: CompletionServices): CompletionProvider {
  const { client, mirror, settings, snooze, crossFile } = services;
  const battery = new Battery(client);
  const availability = new Availability(client, settings, snooze, battery);
  const cache = new CompletionCache();
  const requests = new CompletionRequests(client, mirror, settings, cache, crossFile);
  return new CompletionProvider(services, {
    availability,
    cache,
    requests,
    ahead: new Ahead(requests, cache, battery),
    warmup: new Warmup(requests, client, availability, battery),
  });
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
  readonly #ahead: CompletionParts['ahead'];
  readonly #warmup: CompletionParts['warmup'];
  readonly #disposed = new AbortController();
  last: CompletionRecord | undefined;

  constructor(
    { client, settings, log }: Pick<CompletionServices, 'client' | 'settings' | 'log'>,
    { availability, cache, requests, ahead, warmup }: CompletionParts,
  ) {
    this.#client = client;
    this.#log = new CompletionLog(log);
    this.#availability = availability;
    this.#cache = cache;
    this.#requests = requests;
    this.#finder = new Finder(requests, cache, this.#late, new Trigger(), settings);
    this.#alternatives = new Alternatives(this.#finder, requests, cache);
    this.#ahead = ahead;
    this.#warmup = warmup;
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
      // A refresh, too, was not asked for by hand.
      const refusal = () => this.#availability.refusal(document, record.trigger === 'explicit' ? 'explicit' : 'typing');
      record.reason = await refusal();
      if (record.reason) {
        const { state } = this.#client;
        if (record.reason === 'the engine is down' && state.kind === 'failed') record.detail = state.message;
        return [];
      }
      if (document.version !== version) {
        record.reason = 'superseded by further typing';
        return [];
      }
      const question = this.#question(document, position, context, { started, signal: cancel.signal, refusal });
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
      record.detail = messageOf(error);
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

  dismiss(): Promise<void> {
    return this.#late.dismiss();
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
    const isCommand = context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke;
    const spot = { docId: document.uri.toString(), version: document.version, offset: document.offsetAt(position) };
    const refresh = isCommand && this.#late.takeRefresh(spot);
    const trigger = refresh ? 'refresh' : isCommand ? 'explicit' : 'typing';
    const place = `${vscode.workspace.asRelativePath(document.uri)}:${position.line + 1}:${position.character + 1}`;
    const { usage, timings, diagnostics = [] } = (refresh && this.last) || {};
    // A late answer keeps its cost.
    return { place, at: new Date(), trigger, waitedMs: 0, totalMs: 0, usage, timings, diagnostics };
  }

  #question(
    document: vscode.TextDocument,
    position: vscode.Position,
    { selectedCompletionInfo: selection }: vscode.InlineCompletionContext,
    frame: Pick<Question, 'started' | 'signal' | 'refusal'>,
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
      ...frame,
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
