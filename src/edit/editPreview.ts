/**
 * Shows a proposed edit as a diff against a virtual document, and applies or drops it. One edit at a time: a new one
 * replaces the last. Does not know who proposes the edit or where its text comes from. Listens to nothing while no edit
 * is proposed.
 */
import { oneLine } from '../../engine/protocol/oneLine.ts';
import { messageOf } from '../format.ts';
import * as vscode from '../vscode.ts';
import { openDocument } from '../context/openDocuments.ts';
import type { OffsetRange } from './anchor.ts';
import { PendingEdit } from './pendingEdit.ts';

const SCHEME = 'kvasir-edit';
/** Minimum time between two updates, because a diff of a large file is costly. */
const REFRESH_MS = 120;

export interface ShowEdit {
  document: vscode.TextDocument;
  /** What is replaced. */
  range: vscode.Range;
  /** Shown in the diff's title after the file's name. */
  title: string;
  /** The whole new text. Without it, the text is written into the returned edit. */
  text?: string;
}

export class EditPreview implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #contentChanged = new vscode.EventEmitter<vscode.Uri>();
  readonly #registration: vscode.Disposable;
  #following: vscode.Disposable | undefined;
  #edit: PendingEdit | undefined;
  #uri: vscode.Uri | undefined;
  /** The edit is being accepted. A second press of the button would replace the range again. */
  #accepting: PendingEdit | undefined;
  #numShown = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.#registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  }

  get onDidChange(): vscode.Event<vscode.Uri> {
    return this.#contentChanged.event;
  }

  /** The edit that waits for the user, if any. */
  get pending(): PendingEdit | undefined {
    return this.#edit;
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    const edit = this.#edit;
    if (!edit || uri.toString() !== this.#uri?.toString()) return '';
    return edit.preview(openDocument(edit.uri)?.getText() ?? '');
  }

  /**
   * Opens the diff. Without `text` the caller continues with `write` and `finish`, until the edit's `signal` aborts.
   */
  async show({ document, range, title, text }: ShowEdit): Promise<PendingEdit> {
    const offsets: OffsetRange = { start: document.offsetAt(range.start), end: document.offsetAt(range.end) };
    const edit = new PendingEdit(document, offsets, title, () => this.#refresh(edit));
    const following = this.#follow(edit);
    if (text !== undefined) edit.finish(text);
    const number = ++this.#numShown;
    try {
      // This takes time, in which the document may be edited.
      await this.reject();
      if (number !== this.#numShown) {
        // Another edit was proposed in the meantime.
        edit.cancel();
        return edit;
      }
      this.#edit = edit;
      this.#following = following;
    } finally {
      if (this.#following !== following) following.dispose();
    }
    // A new path each time, because an editor may cache the content of the last one.
    this.#uri = document.uri.with({ scheme: SCHEME, authority: '', query: String(number), fragment: '' });
    this.#setContext();
    const name = oneLine(document.uri.path.slice(document.uri.path.lastIndexOf('/') + 1));
    const start = document.positionAt(edit.anchor.range.start);
    await vscode.commands.executeCommand('vscode.diff', document.uri, this.#uri, `${name}: ${title}`, {
      preview: false,
      selection: new vscode.Range(start, start),
    });
    return edit;
  }

  /** Replaces the range by the new text in one undo step. If that is impossible, says so and keeps the new text. */
  async accept(): Promise<boolean> {
    const edit = this.#edit;
    if (!edit || edit === this.#accepting) return false;
    if (edit.streaming) {
      void vscode.window.showInformationMessage(vscode.l10n.t('Kvasir is still writing this edit.'));
      return false;
    }
    this.#accepting = edit;
    try {
      const document = await vscode.workspace.openTextDocument(edit.uri);
      const range = edit.locate(
        document,
        vscode.l10n.t('The text to replace has changed. Undo that change, or copy the new text.'),
      );
      const change = new vscode.WorkspaceEdit();
      change.replace(
        edit.uri,
        new vscode.Range(document.positionAt(range.start), document.positionAt(range.end)),
        edit.text,
      );
      if (!(await vscode.workspace.applyEdit(change)))
        throw new Error(vscode.l10n.t('The editor refused the edit. The file may be read-only.'));
      const start = document.positionAt(range.start);
      // Before the diff closes. Otherwise another tab would come to the front for a moment and get the user's keys. A
      // cell stays where it is, in its notebook.
      try {
        if (edit.uri.scheme !== 'vscode-notebook-cell')
          await vscode.window.showTextDocument(document, { selection: new vscode.Range(start, start), preview: false });
      } finally {
        await this.#close(edit);
      }
      return true;
    } catch (error) {
      this.#accepting = undefined;
      await this.#offerText(edit, messageOf(error));
      return false;
    }
  }

  /** Drops the edit and closes its diff. Cancels the text that is still being written. */
  async reject(): Promise<void> {
    if (this.#edit) await this.#close(this.#edit);
  }

  dispose(): void {
    // An edit that is about to be shown is not shown.
    this.#numShown++;
    void this.reject();
    this.#registration.dispose();
    this.#contentChanged.dispose();
  }

  async #offerText(edit: PendingEdit, problem: string): Promise<void> {
    const copy = vscode.l10n.t('Copy New Text');
    if ((await vscode.window.showWarningMessage(`Kvasir: ${problem}`, copy)) === copy)
      await vscode.env.clipboard.writeText(edit.text);
  }

  async #close(edit: PendingEdit): Promise<void> {
    if (this.#edit !== edit) return;
    const tabs = this.#tabs(vscode.window.tabGroups.all.flatMap((group) => group.tabs));
    this.#forget();
    edit.cancel();
    if (tabs.length) await vscode.window.tabGroups.close(tabs);
  }

  #follow(edit: PendingEdit): vscode.Disposable {
    return vscode.Disposable.from(
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (!contentChanges.length || document.uri.toString() !== edit.uri.toString()) return;
        edit.anchor.follow(contentChanges);
        this.#refresh(edit);
      }),
      vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
        if (
          this.#edit === edit &&
          this.#tabs(closed).length &&
          !this.#tabs(vscode.window.tabGroups.all.flatMap((group) => group.tabs)).length
        )
          void this.#close(edit);
      }),
    );
  }

  #forget(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#following?.dispose();
    this.#following = undefined;
    this.#edit = undefined;
    this.#accepting = undefined;
    this.#uri = undefined;
    this.#setContext();
  }

  /** Those of `tabs` that show the edit. */
  #tabs(tabs: readonly vscode.Tab[]): vscode.Tab[] {
    return tabs.filter(
      ({ input }) => input instanceof vscode.TabInputTextDiff && input.modified.toString() === this.#uri?.toString(),
    );
  }

  #refresh(edit: PendingEdit): void {
    if (edit !== this.#edit) return;
    this.#timer ??= setTimeout(() => this.#show(), edit.streaming ? REFRESH_MS : 0);
  }

  #show(): void {
    this.#timer = undefined;
    if (this.#uri) this.#contentChanged.fire(this.#uri);
    // Only an edit that has been shown can be accepted.
    this.#setContext();
  }

  #contexts = '';
  #setContext(): void {
    const contexts = {
      'kvasir.editPending': this.#edit !== undefined,
      'kvasir.editStreaming': this.#edit?.streaming === true,
    };
    if (JSON.stringify(contexts) === this.#contexts) return;
    this.#contexts = JSON.stringify(contexts);
    for (const [key, value] of Object.entries(contexts)) void vscode.commands.executeCommand('setContext', key, value);
  }
}
