/**
 * The model in use, for VS Code's own chat view and for other extensions (`vscode.lm`). Listed without being loaded;
 * the first request or count loads it. Cuts nothing silently: a request that does not fit is refused with its size.
 */
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import type { Settings } from '../config.ts';
import { RequestError } from '../../engine/protocol/errors.ts';
import type { EngineHost } from '../client/engineHost.ts';
import type { Log } from '../log.ts';
import { isPath, locateModel } from '../models/locate.ts';
import { formatParameters } from '../models/modelItems.ts';
import { textOf, toChatMessages, toSampling } from './languageModelMessages.ts';
import { type ModelCard, modelCard } from './modelCard.ts';

const VENDOR = 'kvasir';

export class LanguageModelProvider implements vscode.LanguageModelChatProvider, vscode.Disposable {
  readonly #host: EngineHost;
  readonly #settings: Settings;
  readonly #extensionPath: string;
  readonly #log: Log;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #subscriptions: vscode.Disposable[];

  constructor(extensionPath: string, host: EngineHost, settings: Settings, log: Log) {
    this.#host = host;
    this.#settings = settings;
    this.#extensionPath = extensionPath;
    this.#log = log;
    this.#subscriptions = [
      settings.onDidChange(({ before, now }) => {
        if (before.model !== now.model || before.chat.maxTokens !== now.chat.maxTokens) this.#changed.fire();
      }),
      // The loaded engine may know more than the folder's files.
      host.onState(({ kind }) => {
        if (kind === 'ready') this.#changed.fire();
      }),
    ];
    // Editors based on an older VS Code lack this function.
    if (typeof vscode.lm?.registerLanguageModelChatProvider !== 'function') return;
    this.#subscriptions.push(vscode.lm.registerLanguageModelChatProvider(VENDOR, this));
    // VS Code reads the list only after a change event. Without one, its chat would have no model to pick.
    this.#changed.fire();
  }

  get onDidChangeLanguageModelChatInformation(): vscode.Event<void> {
    return this.#changed.event;
  }

  async provideLanguageModelChatInformation(): Promise<vscode.LanguageModelChatInformation[]> {
    const card = await this.#card();
    if (!card?.canChat) return [];
    return [
      {
        id: card.name,
        name: card.name,
        family: card.family,
        version: card.version,
        detail: vscode.l10n.t('on this machine'),
        tooltip: [card.parameters === null ? '' : formatParameters(card.parameters, speech()), card.note]
          .filter(Boolean)
          .join('. '),
        maxInputTokens: card.maxInputTokens,
        maxOutputTokens: card.maxOutputTokens,
        capabilities: { toolCalling: false, imageInput: false },
      },
    ];
  }

  async provideLanguageModelChatResponse(
    _model: vscode.LanguageModelChatInformation,
    messages: readonly vscode.LanguageModelChatRequestMessage[],
    options: vscode.ProvideLanguageModelChatResponseOptions,
    progress: vscode.Progress<vscode.LanguageModelResponsePart>,
    token: vscode.CancellationToken,
  ): Promise<void> {
    const abort = new AbortController();
    const subscription = token.onCancellationRequested(() => abort.abort());
    if (token.isCancellationRequested) abort.abort();
    try {
      const chat = toChatMessages(messages, (kind) => {
        throw new vscode.LanguageModelError(
          vscode.l10n.t('Kvasir reads text only; this request contains a part of type {0}.', kind),
        );
      });
      if (chat.at(-1)?.role !== 'user')
        throw new vscode.LanguageModelError(vscode.l10n.t('The last message of a request must be the user’s.'));
      await this.#host.quietly(() => this.#host.client.ready());
      const card = await this.#card();
      if (!card?.canChat)
        throw vscode.LanguageModelError.NotFound(
          vscode.l10n.t('{0} cannot answer questions; run "Kvasir: Choose Model".', card?.name ?? VENDOR),
        );
      // The engine would leave out old messages. Callers of this API have counted and want all of the prompt read.
      const numTokens = await this.#host.client.countText(chat.map(({ content }) => content).join('\n'));
      if (numTokens > card.maxInputTokens)
        throw new vscode.LanguageModelError(
          vscode.l10n.t(
            'The request takes {0} tokens, but {1} reads {2}.',
            speech().numbers.count(numTokens),
            card.name,
            speech().numbers.count(card.maxInputTokens),
          ),
        );
      const done = await this.#host.client.generate({
        task: () => ({ kind: 'chat', messages: chat, docIds: [], asIs: true }),
        priority: 'chat',
        sampling: toSampling(options.modelOptions, card.maxOutputTokens),
        onChunk: (text) => progress.report(new vscode.LanguageModelTextPart(text)),
        signal: abort.signal,
      });
      for (const note of done.diagnostics) this.#log.info(`language model request: ${note}`);
    } catch (error) {
      throw toLanguageModelError(error);
    } finally {
      subscription.dispose();
    }
  }

  /** Exact. Loads the model if needed. */
  async provideTokenCount(
    _model: vscode.LanguageModelChatInformation,
    text: string | vscode.LanguageModelChatRequestMessage,
  ): Promise<number> {
    try {
      return await this.#host.client.countText(typeof text === 'string' ? text : textOf(text.content));
    } catch (error) {
      throw toLanguageModelError(error);
    }
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#changed.dispose();
  }

  async #card(): Promise<ModelCard | null> {
    const { state } = this.#host.client;
    const { current } = this.#settings;
    // The editor asks when it starts. A name would then need a search of the disk.
    if (current.model && !isPath(current.model) && state.kind !== 'ready') return null;
    try {
      return modelCard(
        (await locateModel(current, this.#extensionPath)).modelDir,
        current.chat.maxTokens,
        state.kind === 'ready' ? state.model : null,
      );
    } catch {
      // Without a model folder, the list is empty; a request reports what is wrong with the setting.
      return null;
    }
  }
}

/** Callers of the API check the error's kind and show its message. */
function toLanguageModelError(error: unknown): Error {
  if (error instanceof vscode.LanguageModelError || !(error instanceof Error)) return error as Error;
  const unavailable =
    error instanceof RequestError &&
    (error.code === 'notLoaded' ||
      error.code === 'modelInvalid' ||
      error.code === 'modelUnsupported' ||
      error.code === 'engineFailed');
  return unavailable ? vscode.LanguageModelError.NotFound(error.message) : new vscode.LanguageModelError(error.message);
}
