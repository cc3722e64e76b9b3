/**
 * Has the engine read around the cursor where somebody who is at work has moved it to and stays: the first completion there then
 * waits for what is typed only, not for the file. One at a time, in the lowest class, in the workspace's files, never on battery,
 * never so that a model is loaded for it, and not with a model that would take seconds. Given up with the next request, or as
 * soon as the cursor leaves. Whoever only reads costs nothing.
 */
import * as vscode from '../vscode.ts';
import type { EngineClient } from '../client/engineClient.ts';
import type { Availability } from './availability.ts';
import { ASK_RARELY_MS, type Battery } from './battery.ts';
import { DOCUMENTS } from './filter.ts';
import type { Runs } from './runs.ts';

/** Whoever looks through a file by keys moves on before; whoever types does so from a few tenths of a second on. */
const REST_MS = 200;
/** Since the last completion asked for by typing, anywhere: for so long somebody is at work. */
const AT_WORK_MS = 2 * 60_000;
/** A prompt of about a thousand tokens is then 1e12 multiply-adds: about a second of two laptop cores in int8, as for a file block. */
const MOST_PARAMETERS = 1e9;

export class Warmup implements vscode.Disposable {
  readonly #runs: Runs;
  readonly #client: EngineClient;
  readonly #availability: Availability;
  readonly #battery: Battery;
  readonly #subscriptions: vscode.Disposable[];
  #typedAt = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The text that the cursor was last seen in: moves in another one are the user's typing. */
  #seen: { document: vscode.TextDocument; version: number } | undefined;

  constructor(runs: Runs, client: EngineClient, availability: Availability, battery: Battery) {
    this.#runs = runs;
    this.#client = client;
    this.#availability = availability;
    this.#battery = battery;
    this.#subscriptions = [
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => this.#moved(textEditor)),
      vscode.window.onDidChangeActiveTextEditor((editor) => this.#moved(editor)),
    ];
  }

  /** Typing has asked for a completion. */
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
      this.#runs.start(
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
      state.model.parameters <= MOST_PARAMETERS &&
      vscode.languages.match(DOCUMENTS, document) > 0 &&
      vscode.workspace.getWorkspaceFolder(document.uri) !== undefined
    );
  }
}
