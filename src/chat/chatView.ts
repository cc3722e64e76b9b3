/**
 * The view `kvasir.chat`: passes the chat to its page and the user's actions back. Holds no state, so the page may be
 * closed and reopened at any time.
 */
import { speech } from '../speech.ts';
import { DOWNLOAD_COMMAND } from '../models/downloadLines.ts';
import * as vscode from '../vscode.ts';
import { attachPage } from '../pageView.ts';
import type { Task } from '../../engine/protocol/tasks.ts';
import type { Settings } from '../config.ts';
import { applyRemedy } from '../client/failure.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EditPreview } from '../edit/editPreview.ts';
import type { EngineHost } from '../client/engineHost.ts';
import type { Log } from '../log.ts';
import { describeModel, locateModel, shownNote } from '../models/locate.ts';
import { ChatController, type ChatChange } from './chatController.ts';
import type { ContextRef, ToHost, ToPage } from './chatMessages.ts';
import { chatStrings } from './chatStrings.ts';
import { CodeBlocks } from './codeBlocks.ts';
import { pickContext } from './contextPicker.ts';
import { fileRef, openRef } from './contextRefs.ts';
import { FileFinder, namesIn } from './fileFinder.ts';

export const CHAT_VIEW = 'kvasir.chat';

export class ChatView implements vscode.WebviewViewProvider, vscode.Disposable {
  readonly chat: ChatController;
  readonly #context: vscode.ExtensionContext;
  readonly #host: EngineHost;
  readonly #mirror: DocumentMirror;
  readonly #settings: Settings;
  readonly #log: Log;
  readonly #codeBlocks: CodeBlocks;
  readonly #finder: FileFinder;
  readonly #subscriptions: vscode.Disposable[];
  #view: vscode.WebviewView | undefined;
  /** The page handles messages only after its `ready`. */
  #pageReady = false;
  /** The input should get the focus, with this text in it. */
  #focusWanted: { draft?: string } | undefined;
  /** What the manifest of the configured model says. */
  #described: { setting: string; name: string; note: string } | undefined;

  constructor(
    context: vscode.ExtensionContext,
    host: EngineHost,
    mirror: DocumentMirror,
    settings: Settings,
    edits: EditPreview,
    log: Log,
  ) {
    this.#context = context;
    this.#host = host;
    this.#mirror = mirror;
    this.#settings = settings;
    this.#log = log;
    this.chat = new ChatController(context.workspaceState, host, mirror, settings);
    this.#codeBlocks = new CodeBlocks(edits);
    this.#finder = new FileFinder(settings);
    host.shownElsewhere = () => this.chat.current.busy && this.#view?.visible === true;
    this.#subscriptions = [
      this.chat.onDidChange((change) => this.#follow(change)),
      this.chat.context.onDidChange(() => this.#postContext()),
      host.onState(() => void this.#postModel()),
      settings.onDidChange(() => void this.#postModel()),
    ];
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.#view = view;
    this.#pageReady = false;
    attachPage(view, this.#context.extensionUri, {
      title: 'Kvasir',
      script: 'dist/webview/chat.js',
      styles: ['media/chat.css'],
      strings: chatStrings(),
      receive: (message: ToHost) => void this.#receive(message),
      shown: (visible) => {
        if (!visible) this.#pageReady = false;
        this.chat.watch(visible);
      },
      closed: () => {
        if (this.#view !== view) return;
        this.#view = undefined;
        this.#pageReady = false;
        this.chat.watch(false);
      },
    });
  }

  /** Opens the view and focuses its input, with `draft` in it if given. */
  async open(draft?: string): Promise<void> {
    this.#focusWanted = draft === undefined ? {} : { draft };
    if (draft !== undefined) this.chat.draft = draft;
    await this.reveal();
    this.#postFocus();
  }

  async reveal(): Promise<void> {
    await vscode.commands.executeCommand(`${CHAT_VIEW}.focus`);
  }

  /** Shows a turn about `document` that is answered by `task`, which is built when the request is sent. */
  async summarize(document: vscode.TextDocument, question: string, task: (docId: string) => Task): Promise<void> {
    await this.reveal();
    await this.chat.run(question, [fileRef(document.uri)], () => task(this.#mirror.sync(document)));
  }

  /** Asks in the shown conversation. */
  async ask(question: string, refs: readonly ContextRef[]): Promise<void> {
    await this.reveal();
    if (!(await this.chat.ask(question, refs))) this.#sayBusy();
  }

  /** Resolves when the conversations are written. */
  async dispose(): Promise<void> {
    for (const subscription of this.#subscriptions) subscription.dispose();
    await this.chat.dispose();
  }

  async #receive(message: ToHost): Promise<void> {
    const { chat } = this;
    switch (message.type) {
      case 'ready':
        this.#pageReady = true;
        this.#post({ type: 'draft', text: chat.draft });
        this.#postConversation();
        this.#postContext();
        this.#postMeter();
        void this.#postModel();
        return this.#postFocus();
      case 'ask':
        if (await chat.ask(message.text)) return;
        // The page sent it before it knew of the other question.
        chat.draft = message.text + chat.draft;
        this.#post({ type: 'draft', text: message.text });
        return this.#sayBusy();
      case 'draft':
        chat.draft = message.text;
        return;
      case 'stop':
        return chat.stop();
      case 'regenerate':
        return chat.regenerate(message.anyway);
      case 'resend':
        if (!(await chat.resend(message.id, message.text))) this.#sayBusy();
        return;
      case 'attach':
        return chat.context.attach(message.id, message.attached);
      case 'attachAndAsk':
        return chat.attachAndAsk(message.ref);
      case 'openContext': {
        const ref = chat.context.find(message.id);
        return ref && this.#openRef(ref);
      }
      case 'openRef':
        return this.#openRef(message.ref);
      case 'find':
        return this.#post({ type: 'found', query: message.query, items: await this.#finder.find(message.query) });
      case 'findNames':
        return this.#post({
          type: 'foundNames',
          query: message.query,
          names: await namesIn(chat.context.refs, message.query),
        });
      case 'pick':
        return chat.context.add([fileRef(vscode.Uri.parse(message.item.uri, true), message.item.kind)]);
      case 'addContext':
        return this.#addContext();
      case 'copy':
        return void (await vscode.env.clipboard.writeText(message.text));
      case 'code':
        return this.#codeBlocks.run(message.action, message.text, message.language, chat.context.editor);
      case 'chooseModel':
        return void (await vscode.commands.executeCommand('kvasir.chooseModel'));
      case 'downloadModel':
        return void (await vscode.commands.executeCommand(DOWNLOAD_COMMAND));
      case 'remedy':
        return applyRemedy(message.remedy);
      case 'showLog':
        return this.#log.show();
      case 'restart':
        // engineHost.ts reports a failure.
        return void (await this.#host.restart().catch(() => {}));
    }
  }

  #sayBusy(): void {
    void vscode.window.showInformationMessage(
      vscode.l10n.t('Kvasir is still answering. Stop the answer, or wait until it is complete.'),
    );
  }

  async #addContext(): Promise<void> {
    const refs = await pickContext(this.#finder, this.chat.context.editor);
    if (refs.length) this.chat.context.add(refs);
    await this.open();
  }

  async #openRef(ref: ContextRef): Promise<void> {
    await openRef(ref).catch(
      () => void vscode.window.showInformationMessage(vscode.l10n.t('{0} can no longer be opened.', ref.path)),
    );
  }

  #follow(change: ChatChange): void {
    if (change.type === 'conversation') {
      this.#postConversation();
      // An empty conversation shows suggestions.
      this.#postContext();
    } else if (change.type === 'meter') {
      this.#postMeter();
      this.#postContext();
    } else this.#post(change);
  }

  #postConversation(): void {
    const { id, turns } = this.chat.current;
    this.#post({ type: 'conversation', id, turns: [...turns] });
  }

  #postContext(): void {
    if (!this.#view || !this.#pageReady) return;
    const { context, sizes, current } = this.chat;
    this.#post({
      type: 'context',
      chips: context.chips(sizes),
      questions: current.turns.length ? [] : context.questions,
    });
  }

  #postMeter(): void {
    this.#post({ type: 'meter', meter: this.chat.meter });
  }

  #postFocus(): void {
    if (!this.#pageReady || !this.#focusWanted) return;
    this.#post({ type: 'focus', ...this.#focusWanted });
    this.#focusWanted = undefined;
  }

  /** The loaded model, or what its folder's files say. This must not load the model. */
  async #postModel(): Promise<void> {
    if (!this.#view || !this.#pageReady) return;
    const { state } = this.#host.client;
    if (state.kind === 'ready') {
      this.#post({ type: 'model', name: state.model.name, note: shownNote(state.model.note), status: '' });
      return;
    }
    const status =
      state.kind === 'starting'
        ? state.stage === 'import'
          ? vscode.l10n.t('Importing the model: {0}', speech().numbers.share(state.fraction))
          : vscode.l10n.t('Loading the model')
        : '';
    const { name, note } = await this.#describe(state.kind === 'starting');
    if (state !== this.#host.client.state) return;
    this.#post({ type: 'model', name, note, status });
  }

  /** While a model is loading, its folder is read once: progress events come many times a second. */
  async #describe(again: boolean): Promise<{ name: string; note: string }> {
    const { current } = this.#settings;
    if (again && this.#described?.setting === current.model) return this.#described;
    const described = { name: '', note: '', setting: current.model };
    try {
      Object.assign(described, describeModel(await locateModel(current, this.#context.extensionPath)));
    } catch {
      // The first request reports what is wrong with the setting.
    }
    this.#described = described;
    return described;
  }

  #post(message: ToPage): void {
    if (this.#view && this.#pageReady) void this.#view.webview.postMessage(message);
  }
}
