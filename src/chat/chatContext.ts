/**
 * The context of the next question: the active editor's file and selection, unless removed by the user, and what the
 * user has added. Secret files are attached only by hand. Does not read files: gather.ts does.
 */
import * as vscode from '../vscode.ts';
import { DOCUMENTS, isSecret } from '../completion/filter.ts';
import type { Settings } from '../config.ts';
import type { Chip, ContextRef } from './chatMessages.ts';
import { fileRef, refId, selectionRef } from './contextRefs.ts';
import { exampleQuestions } from './exampleQuestions.ts';

/** Time without changes after which an edited file or a growing selection is looked at again. */
const DELAY_MS = 300;

/** Token counts of an attached item, as texts. */
export type ChipSizes = ReadonlyMap<string, Pick<Chip, 'tokens' | 'omitted'>>;

export class ChatContext implements vscode.Disposable {
  readonly #settings: Settings;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #subscriptions: vscode.Disposable[];
  /** The last active text editor. */
  #last: vscode.TextEditor | undefined;
  #fileWanted = true;
  /** A secret file that the user has attached by hand. */
  #allowed: vscode.TextDocument | undefined;
  /** The selection that the user has removed. */
  #refused = '';
  #added: ContextRef[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #watched = false;

  constructor(settings: Settings) {
    this.#settings = settings;
    const { activeTextEditor, visibleTextEditors } = vscode.window;
    this.#last = [activeTextEditor, ...visibleTextEditors].find((each) => codeEditor(each));
    this.#subscriptions = [
      vscode.window.onDidChangeActiveTextEditor((editor) => {
        this.#last = codeEditor(editor) ?? this.#last;
        this.#update();
      }),
      // When a diff is in front, there is no active text editor.
      vscode.window.tabGroups.onDidChangeTabs(() => this.#update()),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (textEditor === this.editor) this.#updateSoon();
      }),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (document === this.editor?.document && contentChanges.length) this.#updateSoon();
      }),
    ];
  }

  /** Fires when the attached items or their texts have changed. Never fires while the view is hidden. */
  get onDidChange(): vscode.Event<void> {
    return this.#changed.event;
  }

  /** The editor that questions and code refer to: the last active one, while its file is open in a tab. */
  get editor(): vscode.TextEditor | undefined {
    const last = this.#last;
    if (!last || last.document.isClosed) return undefined;
    if (isVisible(last)) return last;
    const uri = last.document.uri.toString();
    const isOpen = vscode.window.tabGroups.all.some(({ tabs }) =>
      tabs.some(({ input }) => urisOf(input).some((each) => each.toString() === uri)),
    );
    return isOpen ? last : undefined;
  }

  /** The active file, if it is attached. */
  get document(): vscode.TextDocument | undefined {
    const document = this.editor?.document;
    if (!document || !this.#fileWanted) return undefined;
    return isSecret(document, this.#settings.current.completion) && document !== this.#allowed ? undefined : document;
  }

  /** The attached items: the active file, the selection, then what was added. */
  get refs(): ContextRef[] {
    const selection = this.#selection;
    const own = [...(this.document ? [fileRef(this.document.uri)] : []), ...(selection ? [selection] : [])];
    const ids = new Set(own.map(refId));
    return [...own, ...this.#added.filter((ref) => !ids.has(refId(ref)))];
  }

  chips(sizes: ChipSizes): Chip[] {
    const document = this.editor?.document;
    const chips = this.refs.map((ref) => ({
      id: refId(ref),
      kind: ref.kind,
      name: ref.name,
      path: ref.path,
      attached: true,
      ...(sizes.get(refId(ref)) ?? { tokens: null, omitted: null }),
    }));
    if (!document || chips.some(({ id }) => id === document.uri.toString())) return chips;
    const { kind, name, path, uri } = fileRef(document.uri);
    return [{ id: uri, kind, name, path, attached: false, tokens: null, omitted: null }, ...chips];
  }

  /** Example questions about the attached file. */
  get questions(): string[] {
    return exampleQuestions(this.document?.getText() ?? null, this.document?.languageId);
  }

  attach(id: string, attached: boolean): void {
    if (this.#selection && id === refId(this.#selection)) this.#refused = id;
    else if (id === this.editor?.document.uri.toString()) {
      this.#fileWanted = attached;
      this.#allowed = attached ? this.editor.document : undefined;
    }
    if (!attached) this.#added = this.#added.filter((ref) => refId(ref) !== id);
    this.#update();
  }

  /** Attaches an item until it is removed, also while another file is active. */
  add(refs: readonly ContextRef[]): void {
    for (const ref of refs) {
      if (ref.uri === this.editor?.document.uri.toString() && ref.kind === 'file') {
        this.#fileWanted = true;
        this.#allowed = this.editor.document;
      }
      this.#added = [...this.#added.filter((other) => refId(other) !== refId(ref)), ref];
    }
    this.#update();
  }

  find(id: string): ContextRef | undefined {
    const document = this.editor?.document;
    return (
      this.refs.find((ref) => refId(ref) === id) ??
      (document?.uri.toString() === id ? fileRef(document.uri) : undefined)
    );
  }

  /** While the view is hidden, no event is sent. */
  watch(watched: boolean): void {
    this.#watched = watched;
    if (watched) this.#update();
    else clearTimeout(this.#timer);
  }

  dispose(): void {
    clearTimeout(this.#timer);
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#changed.dispose();
  }

  get #selection(): ContextRef | undefined {
    const editor = this.editor;
    // The user does not see the selection of a hidden editor.
    if (!editor || editor.selection.isEmpty || !isVisible(editor)) return undefined;
    if (isSecret(editor.document, this.#settings.current.completion) && editor.document !== this.#allowed)
      return undefined;
    const ref = selectionRef(editor.document, editor.selection);
    return refId(ref) === this.#refused ? undefined : ref;
  }

  #update(): void {
    clearTimeout(this.#timer);
    if (this.#watched) this.#changed.fire();
  }

  /** After the last of several keys. */
  #updateSoon(): void {
    clearTimeout(this.#timer);
    if (this.#watched) this.#timer = setTimeout(() => this.#changed.fire(), DELAY_MS);
  }
}

function isVisible(editor: vscode.TextEditor): boolean {
  return editor === vscode.window.activeTextEditor || vscode.window.visibleTextEditors.includes(editor);
}

/** The files that a tab shows. */
function urisOf(input: unknown): vscode.Uri[] {
  if (input instanceof vscode.TabInputTextDiff) return [input.original, input.modified];
  return input instanceof vscode.TabInputText ? [input.uri] : [];
}

function codeEditor(editor: vscode.TextEditor | undefined): vscode.TextEditor | undefined {
  return editor && vscode.languages.match(DOCUMENTS, editor.document) > 0 ? editor : undefined;
}
