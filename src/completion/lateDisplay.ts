/**
 * Shows results of a request that outlives the editor's question. When there is more text than is on the screen, it
 * triggers the editor to ask again. Such a question looks as if the user had asked by hand, so the position is
 * remembered to recognize it.
 */
import * as vscode from '../vscode.ts';
import { carryOver, type Place } from './place.ts';
import type { CompletionRequest } from './completionRequest.ts';

/**
 * VS Code does not ask again where the user has asked by hand, and a refresh counts as that, unless there is a provider
 * that it has not asked there (`UpdateRequest.satisfies` in its InlineCompletionsSource). This one has nothing to say.
 */
const nothing = (): vscode.InlineCompletionItemProvider => ({ provideInlineCompletionItems: () => [] });

/** Time between two updates of a growing text, chosen for reading. */
const REFRESH_MS = 400;

/** A position in one version of a document. */
export interface Spot {
  docId: string;
  version: number;
  offset: number;
}

interface Watched {
  document: vscode.TextDocument;
  /** What the editor was given last, at the request's place; empty for nothing. */
  returned: string;
  /** When the editor was last given something. */
  at: number;
  timer?: ReturnType<typeof setTimeout>;
  onEnd: () => void;
}

export class LateDisplay implements vscode.Disposable {
  readonly #watched = new Map<CompletionRequest, Watched>();
  /** Where the editor is being triggered to ask. */
  #refreshing: Spot | null = null;

  /**
   * Shows what `request` writes from now on. `returned` is what the editor is given now. `onEnd` is called when the
   * request ends, before its text is shown.
   */
  watch(request: CompletionRequest, document: vscode.TextDocument, returned: string, onEnd: () => void): void {
    const known = this.#watched.get(request);
    const at = performance.now();
    if (known) {
      // The last answer is the one on the screen.
      Object.assign(known, { returned, at, onEnd });
      return;
    }
    request.late = true;
    this.#watched.set(request, { document, returned, at, onEnd });
    const subscription = request.onChange(() => {
      if (request.ended) {
        subscription.dispose();
        this.#end(request);
      } else this.#grown(request);
    });
  }

  /** Whether the question at `spot` was triggered here. */
  isRefresh(spot: Spot): boolean {
    const now = this.#refreshing;
    return now !== null && now.docId === spot.docId && now.version === spot.version && now.offset === spot.offset;
  }

  dispose(): void {
    for (const { timer } of this.#watched.values()) clearTimeout(timer);
    this.#watched.clear();
  }

  #end(request: CompletionRequest): void {
    const watched = this.#watched.get(request);
    this.#watched.delete(request);
    if (!watched) return;
    clearTimeout(watched.timer);
    watched.onEnd();
    if (request.done && request.done.finishReason !== 'abort') void this.#show(request, watched);
  }

  #grown(request: CompletionRequest): void {
    const watched = this.#watched.get(request);
    if (!watched || watched.timer !== undefined) return;
    watched.timer = setTimeout(
      () => {
        watched.timer = undefined;
        void this.#show(request, watched);
      },
      Math.max(0, watched.at + REFRESH_MS - performance.now()),
    );
  }

  /** Triggers the editor to ask again if there is more to show. */
  async #show(request: CompletionRequest, { document, returned }: Watched): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (request.aborted || editor?.document !== document) return;
    const place: Place = {
      docId: request.place.docId,
      text: document.getText(),
      offset: document.offsetAt(editor.selection.active),
    };
    const rest = request.rest(place);
    if (!rest?.text.trim()) return;
    const shown = returned === '' ? '' : (carryOver(request.place, returned, place)?.text ?? '');
    if (rest.text === shown || !rest.text.startsWith(shown)) return;
    const spot: Spot = { docId: place.docId, version: document.version, offset: place.offset };
    this.#refreshing = spot;
    const { scheme } = document.uri;
    const unasked = vscode.languages.registerInlineCompletionItemProvider({ scheme }, nothing());
    try {
      await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger');
    } finally {
      unasked.dispose();
      if (this.#refreshing === spot) this.#refreshing = null;
    }
  }
}
