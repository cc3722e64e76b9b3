/**
 * The view `kvasir.chat`: carries turns and the attached file to its page and the user's wishes back. The conversation
 * goes on while the view is hidden or closed.
 */
import * as vscode from '../vscode.ts';
import type { Task } from '../../engine/protocol.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../documentMirror.ts';
import type { EngineHost } from '../engineHost.ts';
import type { Log } from '../log.ts';
import { describeModel, locateModel } from '../models/locate.ts';
import type { Attachment } from './attachment.ts';
import type { ToHost, ToPage } from './chatMessages.ts';
import { chatPage } from './chatPage.ts';
import { Conversation } from './conversation.ts';

export const CHAT_VIEW = 'kvasir.chat';
/** Workspace state: cleared while no page was there to forget what it keeps across a reload of the window. */
const CLEARED = 'kvasir.chat.cleared';

export class ChatView implements vscode.WebviewViewProvider, vscode.Disposable {
  readonly #context: vscode.ExtensionContext;
  readonly #host: EngineHost;
  readonly #mirror: DocumentMirror;
  readonly #settings: Settings;
  readonly #attachment: Attachment;
  readonly #log: Log;
  readonly #conversation: Conversation;
  readonly #subscriptions: vscode.Disposable[];
  #view: vscode.WebviewView | undefined;
  /** Messages mean something to the page only after its `ready`. */
  #pageReady = false;
  #focusWanted = false;
  /** What the folder of the setting's model says of itself. */
  #described: { setting: string; name: string; note: string } | undefined;

  constructor(context: vscode.ExtensionContext, host: EngineHost, mirror: DocumentMirror, settings: Settings, attachment: Attachment, log: Log) {
    this.#context = context;
    this.#host = host;
    this.#mirror = mirror;
    this.#settings = settings;
    this.#attachment = attachment;
    this.#log = log;
    this.#conversation = new Conversation(host.client, vscode.l10n.t('Stopped.'), (change) => {
      this.#post(change);
      // With nothing said yet, there is room for suggestions again.
      if (change.type === 'turns' && !change.turns.length) this.#postContext();
    });
    host.shownElsewhere = () => this.#conversation.busy && this.#view?.visible === true;
    this.#subscriptions = [
      attachment.onDidChange(() => this.#postContext()),
      host.onState(() => this.#postModel()),
      settings.onDidChange(() => this.#postModel()),
    ];
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.#view = view;
    this.#pageReady = false;
    view.webview.options = { enableScripts: true, localResourceRoots: ['dist', 'media'].map((folder) => vscode.Uri.joinPath(this.#context.extensionUri, folder)) };
    const received = view.webview.onDidReceiveMessage((message: ToHost) => void this.#receive(message));
    const shown = view.onDidChangeVisibility(() => this.#attachment.watch(view.visible));
    view.onDidDispose(() => {
      received.dispose();
      shown.dispose();
      if (this.#view !== view) return;
      this.#view = undefined;
      this.#pageReady = false;
      this.#attachment.watch(false);
    });
    view.webview.html = chatPage(view.webview, this.#context.extensionUri);
    this.#attachment.watch(view.visible);
  }

  /** Opens the view and puts the cursor into its input. */
  async open(): Promise<void> {
    this.#focusWanted = true;
    await vscode.commands.executeCommand(`${CHAT_VIEW}.focus`);
    this.#postFocus();
  }

  /** Shows a turn about `document` whose answer is `task`'s, made where the request is sent. */
  async summarize(document: vscode.TextDocument, question: string, task: (docId: string) => Task): Promise<void> {
    await vscode.commands.executeCommand(`${CHAT_VIEW}.focus`);
    await this.#conversation.run({ question, file: fileName(document), task: () => task(this.#mirror.sync(document)), priority: 'summary', ...this.#sampling() });
  }

  clear(): void {
    if (!this.#pageReady || !this.#view?.visible) void this.#context.workspaceState.update(CLEARED, true);
    this.#conversation.clear();
  }

  dispose(): void {
    this.#conversation.stop();
    for (const subscription of this.#subscriptions) subscription.dispose();
  }

  async #receive(message: ToHost): Promise<void> {
    switch (message.type) {
      case 'ready':
        this.#pageReady = true;
        this.#conversation.restore(this.#context.workspaceState.get(CLEARED) ? [] : message.turns);
        void this.#context.workspaceState.update(CLEARED, undefined);
        this.#post({ type: 'turns', turns: [...this.#conversation.turns] });
        this.#postContext();
        this.#postModel();
        return this.#postFocus();
      case 'ask':
        return this.#ask(message.text);
      case 'stop':
        return this.#conversation.stop();
      case 'clear':
        return this.clear();
      case 'attach':
        return this.#attachment.attach(message.attached);
      case 'copy':
        return void (await vscode.env.clipboard.writeText(message.text));
      case 'insert':
        return this.#insert(message.text);
      case 'openFile':
        if (this.#attachment.editor) await vscode.window.showTextDocument(this.#attachment.editor.document, this.#attachment.editor.viewColumn);
        return;
      case 'showLog':
        return this.#log.show();
      case 'restart':
        // A failure is shown by the engine's host.
        return void (await this.#host.restart().catch(() => {}));
    }
  }

  async #ask(text: string): Promise<void> {
    const question = text.trim();
    if (!question) return;
    const { document, editor } = this.#attachment;
    const history = this.#conversation.history();
    await this.#conversation.run({
      question,
      ...(document ? { file: fileName(document) } : {}),
      task: () => ({
        kind: 'chat',
        messages: [...history, { role: 'user', content: question }],
        docIds: document ? [this.#mirror.sync(document)] : [],
        ...(document && editor ? { cursor: document.offsetAt(editor.selection.active) } : {}),
      }),
      priority: 'chat',
      ...this.#sampling(),
    });
  }

  #sampling(): { sampling?: { maxTokens: number } } {
    const { maxTokens } = this.#settings.current.chat;
    return maxTokens ? { sampling: { maxTokens } } : {};
  }

  async #insert(text: string): Promise<void> {
    const editor = this.#attachment.editor;
    if (!editor || !vscode.window.visibleTextEditors.includes(editor)) {
      void vscode.window.showInformationMessage(vscode.l10n.t('Open the file that the code is to be inserted into.'));
      return;
    }
    await editor.edit((edit) => {
      for (const selection of editor.selections) edit.replace(selection, text);
    });
    await vscode.window.showTextDocument(editor.document, editor.viewColumn);
  }

  #postFocus(): void {
    if (!this.#pageReady || !this.#focusWanted) return;
    this.#focusWanted = false;
    this.#post({ type: 'focus' });
  }

  #postContext(): void {
    if (!this.#view || !this.#pageReady) return;
    this.#post({ type: 'context', chip: this.#attachment.chip, questions: this.#conversation.turns.length ? [] : this.#attachment.questions });
  }

  /** The loaded model, or what its folder says of it: looking at it must not load it. */
  #postModel(): void {
    if (!this.#view || !this.#pageReady) return;
    const { state } = this.#host.client;
    if (state.kind === 'ready') {
      this.#post({ type: 'model', name: state.model.name, note: state.model.note, status: '' });
      return;
    }
    const status = state.kind === 'starting' ? (state.stage === 'import' ? vscode.l10n.t('Importing the model: {0}', `${Math.round(state.fraction * 100)}%`) : vscode.l10n.t('Loading the model')) : '';
    const { name, note } = this.#describe(state.kind === 'starting');
    this.#post({ type: 'model', name, note, status });
  }

  /** While a model is being loaded, its folder is read once: progress comes many times a second. */
  #describe(again: boolean): { name: string; note: string } {
    const { model } = this.#settings.current;
    if (again && this.#described?.setting === model) return this.#described;
    this.#described = { name: '', note: '', setting: model };
    try {
      Object.assign(this.#described, describeModel(locateModel(model, this.#context.extensionPath).modelDir));
    } catch {
      // The first request says what is wrong with the setting.
    }
    return this.#described;
  }

  #post(message: ToPage): void {
    if (this.#view && this.#pageReady) void this.#view.webview.postMessage(message);
  }
}

function fileName(document: vscode.TextDocument): string {
  return vscode.workspace.asRelativePath(document.uri);
}
