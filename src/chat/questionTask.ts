/**
 * Turns a question and its context into the engine's task: reads the attachments, expands slash commands, and refuses
 * what the model is too small for. Does not know conversations or views.
 */
import * as vscode from '../vscode.ts';
import type { ChatMessage, ChatTask, SummarizeTask } from '../../engine/protocol/tasks.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineClient } from '../client/engineClient.ts';
import type { ContextRef } from './chatMessages.ts';
import { selectionRef, toRange } from './contextRefs.ts';
import type { Prepared, Unasked } from './conversation.ts';
import { type Gathered, gather } from './gather.ts';
import {
  isFactCommand,
  namedSymbol,
  needsInstructions,
  parseSlash,
  type SlashCommand,
  slashQuestion,
} from '../../engine/protocol/slash.ts';
import { symbolAt, symbolsOf } from './chatSymbols.ts';

export interface QuestionTasksOptions {
  client: EngineClient;
  mirror: DocumentMirror;
  settings: Settings;
  /** The editor that questions are about. */
  editor(): vscode.TextEditor | undefined;
}

/** The task, and what it was made of. */
interface Made {
  task: () => ChatTask | SummarizeTask;
  prompt: string;
  gathered: Gathered;
}

export class QuestionTasks {
  readonly #options: QuestionTasksOptions;

  constructor(options: QuestionTasksOptions) {
    this.#options = options;
  }

  /** The attachments of a question. A slash command about a definition adds that. */
  async contextFor(question: string, refs: readonly ContextRef[]): Promise<ContextRef[]> {
    const command = parseSlash(question);
    // A summary is of the attached file.
    if (!command || (command.name === 'summarize' && namedSymbol(command.rest) === undefined)) return [...refs];
    const file = refs.find(({ kind }) => kind === 'file');
    const editor = this.#options.editor();
    const selection = refs.find(({ kind }) => kind === 'selection');
    const name = namedSymbol(command.rest);
    // A file that is not attached, because it is secret or was removed, stays out of the prompt.
    const inEditor = refs.some(({ uri }) => uri === editor?.document.uri.toString()) ? editor?.document : undefined;
    const document = file ? await openDocument(file.uri) : inEditor;
    if (!document) return [...refs];
    const symbol = await this.#symbolFor(document, name, selection, editor);
    if (!symbol) return [...refs];
    const ref = selectionRef(document, symbol.range, symbol.name);
    return [...refs.filter(({ kind }) => kind !== 'selection'), ref];
  }

  /** Loads the model for a slash command, because the prompt depends on the model. */
  async prepare(
    question: string,
    refs: readonly ContextRef[],
    history: readonly ChatMessage[],
    anyway: boolean,
  ): Promise<Prepared | Unasked> {
    const { client } = this.#options;
    const command = parseSlash(question);
    const model = command ? await client.ready() : undefined;
    const canEdit = model?.canEdit ?? true;
    if (model && command && needsInstructions(command.name) && !canEdit && !anyway) return { refused: model.name };
    // Without a file, "this file" would have no meaning.
    if (((command && !command.rest) || isFactCommand(question)) && !refs.length)
      return { missing: vscode.l10n.t('Nothing is attached to the question. Open or attach a file.') };
    const { task: made, prompt, gathered } = await this.#made(question, refs, history, canEdit);
    const task = anyway ? () => insisting(made()) : made;
    const isSmall = client.state.kind === 'ready' && !client.state.model.canEdit;
    // The notes say why nothing of it could be read.
    if (isSmall && refs.length && !gathered.documents.length && !gathered.snippets.length)
      return { missing: gathered.notes.join(' ') };
    return { task, prompt, notes: gathered.notes };
  }

  /** The measured size of the same question; null while no model is loaded. Throws what the answer would fail with. */
  async measure(question: string, refs: readonly ContextRef[], history: readonly ChatMessage[]): Promise<Made | null> {
    const { state } = this.#options.client;
    if (state.kind !== 'ready') return null;
    return await this.#made(question, await this.contextFor(question, refs), history, state.model.canEdit);
  }

  async #made(
    question: string,
    refs: readonly ContextRef[],
    history: readonly ChatMessage[],
    canEdit: boolean,
  ): Promise<Made> {
    const { settings, mirror, editor } = this.#options;
    const command = parseSlash(question);
    const prompt = command ? promptOf(command, refs, canEdit) : question;
    const summarized = command?.name === 'summarize' ? summarizedRefs(command, refs) : undefined;
    if (command && summarized) {
      const gathered = await gather(summarized, settings, editor());
      const task = summaryTask(command, summarized, gathered, mirror);
      const others = refs
        .filter((ref) => !summarized.includes(ref))
        .map(({ path }) =>
          vscode.l10n.t(
            '{0} is left out: {1}',
            path,
            vscode.l10n.t('a summary covers one file, or the selection in it'),
          ),
        );
      if (task) return { task, prompt, gathered: { ...gathered, notes: [...gathered.notes, ...others] } };
    }
    const gathered = await gather(refs, settings, editor());
    return { task: () => this.#chatTask(prompt, gathered, history, canEdit), prompt, gathered };
  }

  #chatTask(
    prompt: string,
    { documents, snippets, cursor }: Gathered,
    history: readonly ChatMessage[],
    canEdit: boolean,
  ): ChatTask {
    // A small model was trained on questions about a definition after its file, without repeating the definition.
    const wanted = canEdit || !documents.length ? snippets : snippets.filter(({ symbol }) => symbol === undefined);
    return {
      kind: 'chat',
      messages: [...history, { role: 'user', content: prompt }],
      docIds: documents.map((document) => this.#options.mirror.sync(document)),
      ...(cursor ? { cursor: cursor() } : {}),
      ...(wanted.length ? { snippets: wanted.map(({ symbol: _, ...snippet }) => snippet) } : {}),
    };
  }

  /** The definition that a command is about: the named one, else the selected one, else the one at the cursor. */
  async #symbolFor(
    document: vscode.TextDocument,
    name: string | undefined,
    selection: ContextRef | undefined,
    editor: vscode.TextEditor | undefined,
  ) {
    if (name !== undefined)
      return (await symbolsOf(document)).find((symbol) => symbol.name === name || name.endsWith(`.${symbol.name}`));
    if (!selection) return editor?.document === document ? symbolAt(document, editor.selection.active) : undefined;
    if (selection.symbol !== undefined || !selection.range || selection.uri !== document.uri.toString())
      return undefined;
    const range = toRange(selection.range);
    const text = document.getText(range).trim();
    const symbols = await symbolsOf(document);
    if (/^[\w$]+$/.test(text)) return symbols.find((symbol) => symbol.name === text);
    return symbols.find((symbol) => document.getText(symbol.range).trim() === text);
  }
}

/** Asks a model that is too small for the question, too. */
const insisting = (task: ChatTask | SummarizeTask): ChatTask | SummarizeTask =>
  task.kind === 'chat' ? { ...task, anyway: true } : task;

/** The file that a summary is of, and what is selected in it; undefined if it has to be asked as a question. */
function summarizedRefs({ rest }: SlashCommand, refs: readonly ContextRef[]): ContextRef[] | undefined {
  const file = refs.find(({ kind }) => kind === 'file');
  if (!file || (rest && namedSymbol(rest) === undefined)) return undefined;
  const selection = refs.find(({ kind, uri }) => kind === 'selection' && uri === file.uri);
  return selection ? [file, selection] : [file];
}

/**
 * A summary uses the task of that name, with the wording that the model knows best. Undefined for a file that cannot be
 * read.
 */
function summaryTask(
  { rest }: SlashCommand,
  refs: readonly ContextRef[],
  { documents }: Gathered,
  mirror: DocumentMirror,
): (() => SummarizeTask) | undefined {
  const [document] = documents;
  if (!document) return undefined;
  const selection = refs.find(({ kind, uri }) => kind === 'selection' && uri === document.uri.toString());
  if (!selection?.range || (selection.symbol !== undefined && !rest))
    return () => ({ kind: 'summarize', docId: mirror.sync(document) });
  const range = document.validateRange(toRange(selection.range));
  const label = selection.symbol;
  return () => ({
    kind: 'summarize',
    docId: mirror.sync(document),
    range: {
      start: document.offsetAt(range.start),
      end: document.offsetAt(range.end),
      ...(label === undefined ? {} : { label }),
    },
  });
}

function promptOf(command: SlashCommand, refs: readonly ContextRef[], canEdit: boolean): string {
  const selection = refs.find(({ kind }) => kind === 'selection');
  const symbol = selection?.symbol ?? namedSymbol(command.rest);
  return slashQuestion(
    command,
    { selection: selection !== undefined, ...(symbol === undefined ? {} : { symbol }) },
    canEdit,
  );
}

async function openDocument(uri: string): Promise<vscode.TextDocument | undefined> {
  return await Promise.resolve(vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true))).catch(() => undefined);
}
