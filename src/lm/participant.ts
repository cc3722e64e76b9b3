/**
 * `@kvasir` in VS Code's chat view, with the same engine, prompts and notes as Kvasir's own view. Answers whatever
 * model is picked in that view. The view itself may ask for a sign-in, which has nothing to do with Kvasir.
 */
import { messageOf } from '../format.ts';
import type { AnswerSource, ChatMessage } from '../../engine/protocol/tasks.ts';
import { FIRST_MODEL } from '../../engine/download/knownModels.ts';
import { DOWNLOAD_COMMAND, downloadLabel } from '../models/downloadLines.ts';
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import { QuestionTasks } from '../chat/questionTask.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineHost } from '../client/engineHost.ts';
import type { ContextRef } from '../chat/chatMessages.ts';
import { fileRef, selectionRef } from '../chat/contextRefs.ts';
import { DOCUMENTS, isSecret } from '../completion/filter.ts';

/** As in package.json. */
const PARTICIPANT = 'kvasir.assistant';

export class Participant implements vscode.Disposable {
  readonly #host: EngineHost;
  readonly #settings: Settings;
  readonly #tasks: QuestionTasks;
  readonly #participant: vscode.ChatParticipant | undefined;

  constructor(extensionUri: vscode.Uri, host: EngineHost, mirror: DocumentMirror, settings: Settings) {
    this.#host = host;
    this.#settings = settings;
    this.#tasks = new QuestionTasks({ client: host.client, mirror, settings, editor: editorInFront });
    // Editors based on VS Code may lack its chat.
    if (typeof vscode.chat?.createChatParticipant !== 'function') return;
    this.#participant = vscode.chat.createChatParticipant(PARTICIPANT, (request, context, stream, token) =>
      this.answer(request, context, stream, token),
    );
    this.#participant.iconPath = vscode.Uri.joinPath(extensionUri, 'media', 'icon.png');
  }

  /** Streams the answer. A failure becomes the result's error message. */
  async answer(
    request: vscode.ChatRequest,
    { history }: vscode.ChatContext,
    stream: vscode.ChatResponseStream,
    token: vscode.CancellationToken,
  ): Promise<vscode.ChatResult> {
    const abort = new AbortController();
    const subscription = token.onCancellationRequested(() => abort.abort());
    try {
      const about = await aboutRequest(request.references, this.#settings);
      const question = [
        request.command ? `/${request.command} ${request.prompt}`.trim() : request.prompt,
        ...about.texts,
      ].join('\n\n');
      const refs = await this.#tasks.contextFor(question, about.refs);
      const prepared = await this.#host.quietly(() => this.#tasks.prepare(question, refs, messagesOf(history), false));
      if ('refused' in prepared) {
        stream.markdown(vscode.l10n.t('{0} is too small for this: choose a larger model.', prepared.refused));
        offerModels(stream);
        return {};
      }
      if ('missing' in prepared) {
        stream.markdown([...about.notes, prepared.missing].map(escapeMarkdown).join('\n\n'));
        return {};
      }
      const { maxTokens } = this.#settings.current.chat;
      const done = await this.#host.client.generate({
        task: prepared.task,
        priority: 'chat',
        ...(maxTokens ? { sampling: { maxTokens } } : {}),
        onChunk: (text) => stream.markdown(text),
        signal: abort.signal,
      });
      const notes = [...about.notes, ...(prepared.notes ?? []), ...done.diagnostics];
      if (notes.length) stream.markdown(`\n\n${notes.map((note) => `*${escapeMarkdown(note)}*`).join('  \n')}`);
      if (done.source === 'refused') offerModels(stream);
      for (const { uri } of refs) stream.reference(vscode.Uri.parse(uri, true));
      return done.source ? { metadata: { source: done.source } } : {};
    } catch (error) {
      return { errorDetails: { message: messageOf(error) } };
    } finally {
      subscription.dispose();
    }
  }

  dispose(): void {
    this.#participant?.dispose();
  }
}

/**
 * The earlier questions, each with its answer. Chat templates require alternating turns, so a question without an
 * answer is left out.
 */
function messagesOf(history: vscode.ChatContext['history']): ChatMessage[] {
  const messages: ChatMessage[] = [];
  for (const [i, turn] of history.entries()) {
    const answer = history[i + 1];
    // The prompt of a command does not contain its question, and its answer is meaningless without it.
    if (!('prompt' in turn) || !turn.prompt.trim() || turn.command || !answer || !('response' in answer)) continue;
    const text = answer.response
      .map((part) => ('value' in part && part.value instanceof vscode.MarkdownString ? part.value.value : ''))
      .join('');
    const source = sourceOf(answer.result);
    if (text && source !== 'refused')
      messages.push(
        { role: 'user', content: turn.prompt },
        { role: 'assistant', content: text, ...(source ? { source } : {}) },
      );
  }
  return messages;
}

function sourceOf({ metadata }: vscode.ChatResult): AnswerSource | undefined {
  const source = metadata?.source;
  return SOURCES.find((each) => each === source);
}

const SOURCES: readonly AnswerSource[] = ['files', 'stock', 'unattached', 'refused'];

function offerModels(stream: vscode.ChatResponseStream): void {
  stream.button({ command: DOWNLOAD_COMMAND, title: downloadLabel(FIRST_MODEL, speech()) });
  stream.button({ command: 'kvasir.chooseModel', title: vscode.l10n.t('Choose Model') });
}

function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_{}[\]<>()#|!]/g, '\\$&');
}

/** What a request is about. */
interface About {
  refs: ContextRef[];
  /** Attached as text, without a file. */
  texts: string[];
  notes: string[];
}

/** The file in front of the user: while the chat view has the focus, no editor may be active. */
function editorInFront(): vscode.TextEditor | undefined {
  const { activeTextEditor, visibleTextEditors } = vscode.window;
  return [activeTextEditor, ...visibleTextEditors].find(
    (each) => each && vscode.languages.match(DOCUMENTS, each.document) > 0,
  );
}

/**
 * The attachments of a request, else the file in front of the user, as references of Kvasir's own chat. Reports what
 * cannot be included.
 */
async function aboutRequest(references: readonly vscode.ChatPromptReference[], settings: Settings): Promise<About> {
  const about: About = { refs: [], texts: [], notes: [] };
  // VS Code lists references from the last to the first.
  for (const { value, id } of [...references].reverse()) {
    if (value instanceof vscode.Uri) about.refs.push(fileRef(value));
    else if (value instanceof vscode.Location)
      about.refs.push(selectionRef(await vscode.workspace.openTextDocument(value.uri), value.range));
    else if (typeof value === 'string') about.texts.push(value);
    else if (value !== undefined)
      about.notes.push(vscode.l10n.t('{0} is left out: {1}', id, vscode.l10n.t('Kvasir reads text only')));
  }
  const editor = editorInFront();
  // As in Kvasir's own view: secret files are taken only when attached by hand.
  if (!about.refs.length && !about.texts.length && editor && !isSecret(editor.document, settings.current.completion)) {
    about.refs.push(fileRef(editor.document.uri));
    if (!editor.selection.isEmpty) about.refs.push(selectionRef(editor.document, editor.selection));
  }
  return about;
}
