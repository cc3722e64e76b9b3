/**
 * The file that the next question is about: the active editor's, unless the user has removed it. Files that are kept from
 * completions (secrets) are attached only by hand.
 */
import * as vscode from '../vscode.ts';
import { DOCUMENTS, isSecret } from '../completion/filter.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../documentMirror.ts';
import type { EngineHost } from '../engineHost.ts';
import { formatCount } from '../format.ts';
import type { ContextChip } from './chatMessages.ts';
import { exampleQuestions } from './questions.ts';

/** Counting a larger file would hold up the engine's thread, and no model of today takes it whole: its chip shows no number. */
const MOST_COUNTED_CHARACTERS = 300_000;
/** Silence after which an edited file is looked at again, and any file's tokens are counted. */
const DELAY_MS = 400;

export class Attachment implements vscode.Disposable {
  readonly #host: EngineHost;
  readonly #mirror: DocumentMirror;
  readonly #settings: Settings;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #subscriptions: vscode.Disposable[];
  #editor: vscode.TextEditor | undefined;
  #wanted = true;
  /** A secret that the user has attached by hand. */
  #allowed: vscode.TextDocument | undefined;
  #counted: { docId: string; version: number; tokens: number } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #watched = false;

  constructor(host: EngineHost, mirror: DocumentMirror, settings: Settings) {
    this.#host = host;
    this.#mirror = mirror;
    this.#settings = settings;
    this.#editor = codeEditor(vscode.window.activeTextEditor);
    this.#subscriptions = [
      vscode.window.onDidChangeActiveTextEditor((editor) => {
        // The last code editor stays meant while an output pane or nothing at all is active, until it is closed.
        this.#editor = codeEditor(editor) ?? (this.#editor && vscode.window.visibleTextEditors.includes(this.#editor) ? this.#editor : undefined);
        this.#update();
      }),
      vscode.workspace.onDidChangeTextDocument((event) => {
        if (event.document === this.#editor?.document && event.contentChanges.length) this.#updateSoon();
      }),
      host.onState((state) => {
        if (state.kind === 'ready') this.#update();
      }),
    ];
  }

  /** Fires when `chip`, `questions` or the attached document have changed. */
  get onDidChange(): vscode.Event<void> {
    return this.#changed.event;
  }

  /** The editor that a question is about and code is inserted into. */
  get editor(): vscode.TextEditor | undefined {
    return this.#editor;
  }

  get document(): vscode.TextDocument | undefined {
    const document = this.#editor?.document;
    if (!document || !this.#wanted) return undefined;
    return isSecret(document, this.#settings.current.completion) && document !== this.#allowed ? undefined : document;
  }

  get chip(): ContextChip | null {
    const document = this.#editor?.document;
    if (!document) return null;
    // The count of a moment ago stays until the new one is there.
    const known = this.#counted?.docId === document.uri.toString() ? this.#counted.tokens : null;
    return {
      name: document.uri.path.slice(document.uri.path.lastIndexOf('/') + 1),
      path: vscode.workspace.asRelativePath(document.uri),
      attached: this.document !== undefined,
      tokens: known === null ? null : formatCount(known, vscode.env.language),
    };
  }

  get questions(): string[] {
    return exampleQuestions(this.document?.getText() ?? null);
  }

  attach(attached: boolean): void {
    this.#wanted = attached;
    this.#allowed = attached ? this.#editor?.document : undefined;
    this.#update();
  }

  /** While nobody looks, nothing is counted. */
  watch(watched: boolean): void {
    this.#watched = watched;
    if (watched) this.#update();
  }

  dispose(): void {
    clearTimeout(this.#timer);
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#changed.dispose();
  }

  #update(): void {
    clearTimeout(this.#timer);
    if (!this.#watched) return;
    this.#changed.fire();
    this.#timer = setTimeout(() => void this.#count(), DELAY_MS);
  }

  /** After the last of a row of keys. */
  #updateSoon(): void {
    clearTimeout(this.#timer);
    if (!this.#watched) return;
    this.#timer = setTimeout(() => {
      this.#changed.fire();
      void this.#count();
    }, DELAY_MS);
  }

  async #count(): Promise<void> {
    const { document } = this;
    if (!document) return;
    const { version } = document;
    const docId = document.uri.toString();
    if (this.#counted?.docId === docId && this.#counted.version === version) return;
    if (document.offsetAt(document.lineAt(document.lineCount - 1).range.end) > MOST_COUNTED_CHARACTERS) {
      const shown = this.#counted?.docId === docId;
      this.#counted = undefined;
      if (shown) this.#changed.fire();
      return;
    }
    const tokens = await this.#host.client.countTokens(() => this.#mirror.sync(document)).catch(() => null);
    if (tokens === null || document.version !== version || document !== this.document) return;
    this.#counted = { docId, version, tokens };
    this.#changed.fire();
  }
}

function codeEditor(editor: vscode.TextEditor | undefined): vscode.TextEditor | undefined {
  return editor && vscode.languages.match(DOCUMENTS, editor.document) > 0 ? editor : undefined;
}
