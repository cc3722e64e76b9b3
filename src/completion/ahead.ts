/**
 * Requests that nobody has asked for yet: the completion after the shown one, and the text at a cursor that rests. Each
 * has the lowest priority, is the only one of its kind, and never runs on battery.
 */
import { ASK_RARELY_MS, type Battery, type Availability } from './availability.ts';
import type { CompletionCache } from './completionCache.ts';
import type { Found, Question } from './finder.ts';
import { placeAfter } from './place.ts';
import type { CompletionRequests } from './completionRequests.ts';
import * as vscode from '../vscode.ts';
import type { EngineClient } from '../client/engineClient.ts';
import { DOCUMENTS } from './filter.ts';

/** Typing through the shown text must not send a request for each key. */
const QUIET_MS = 150;
const MAX_LINES = 4;
const MAX_CHARACTERS = 240;

/**
 * Computes the completion after the shown one while the user reads, so that accepting shows the next one at once.
 * Starts after a pause, and not after a long text. A key that leaves its text ends it (completionRequests.ts).
 */
export class Ahead implements vscode.Disposable {
  readonly #requests: CompletionRequests;
  readonly #cache: CompletionCache;
  readonly #battery: Battery;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(requests: CompletionRequests, cache: CompletionCache, battery: Battery) {
    this.#requests = requests;
    this.#cache = cache;
    this.#battery = battery;
  }

  /** `found` is what the editor was just given for `question`. */
  schedule({ document, origin, selected, version }: Question, { insertion, completion }: Found): void {
    this.cancel();
    const { text, replaces } = insertion;
    if (!completion || replaces > 0 || text.length > MAX_CHARACTERS || text.split('\n').length > MAX_LINES) return;
    const given = selected + text;
    const after = placeAfter(origin, given);
    if (this.#cache.lookup(after) || this.#requests.join(after)) return;
    const timer = setTimeout(async () => {
      if (
        (await this.#battery.ask(ASK_RARELY_MS)) ||
        this.#timer !== timer ||
        document.version !== version ||
        document.isClosed
      )
        return;
      this.#requests.abortAll('ahead');
      this.#requests.start(document, origin, { purpose: 'ahead', given });
    }, QUIET_MS);
    this.#timer = timer;
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  dispose(): void {
    this.cancel();
  }
}

/** Users who move through a file by keys move on sooner; users who type start after a few tenths of a second. */
const REST_MS = 200;
/** A user counts as active for this time after the last completion asked for by typing. */
const AT_WORK_MS = 2 * 60_000;
/**
 * A prompt of about 1000 tokens then takes 1e12 multiply-adds: about a second on two laptop cores in int8, as for a
 * file block.
 */
const MAX_PARAMETERS = 1e9;

/**
 * Lets the engine read the text around the cursor when a user who is typing has moved it and stays there. The first
 * completion there then waits only for the typed text. Only in workspace files; never to load a model, not with slow
 * models. Aborted by the next request or when the cursor leaves.
 */
export class Warmup implements vscode.Disposable {
  readonly #requests: CompletionRequests;
  readonly #client: EngineClient;
  readonly #availability: Availability;
  readonly #battery: Battery;
  readonly #subscriptions: vscode.Disposable[];
  #typedAt = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The document version at the last cursor move. A move in a newer version is caused by typing. */
  #seen: { document: vscode.TextDocument; version: number } | undefined;

  constructor(requests: CompletionRequests, client: EngineClient, availability: Availability, battery: Battery) {
    this.#requests = requests;
    this.#client = client;
    this.#availability = availability;
    this.#battery = battery;
    this.#subscriptions = [
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => this.#moved(textEditor)),
      vscode.window.onDidChangeActiveTextEditor((editor) => this.#moved(editor)),
    ];
  }

  /** Call it when typing has asked for a completion. */
  typed(): void {
    this.#typedAt = performance.now();
  }

  dispose(): void {
    this.#cancel();
    for (const subscription of this.#subscriptions) subscription.dispose();
  }

  #cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #moved(editor: vscode.TextEditor | undefined): void {
    this.#cancel();
    if (!editor || editor !== vscode.window.activeTextEditor) return;
    const { document } = editor;
    const { version } = document;
    const typed = this.#seen?.document === document && this.#seen.version !== version;
    this.#seen = { document, version };
    if (typed || editor.selections.length > 1 || !editor.selection.isEmpty || !this.#suits(document)) return;
    const timer = setTimeout(async () => {
      const refused =
        (await this.#availability.refusal(document, 'typing')) || (await this.#battery.ask(ASK_RARELY_MS));
      if (
        refused ||
        this.#timer !== timer ||
        document.version !== version ||
        document.isClosed ||
        !this.#suits(document)
      )
        return;
      this.#requests.start(
        document,
        {
          docId: document.uri.toString(),
          text: document.getText(),
          offset: document.offsetAt(editor.selection.active),
        },
        { purpose: 'warm' },
      );
    }, REST_MS);
    this.#timer = timer;
  }

  #suits(document: vscode.TextDocument): boolean {
    const { state } = this.#client;
    const atWork = performance.now() - this.#typedAt < AT_WORK_MS;
    return (
      atWork &&
      state.kind === 'ready' &&
      state.model.parameters <= MAX_PARAMETERS &&
      vscode.languages.match(DOCUMENTS, document) > 0 &&
      vscode.workspace.getWorkspaceFolder(document.uri) !== undefined
    );
  }
}
