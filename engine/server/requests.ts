/**
 * The running requests. Turns a `generate` message into a prompt and a sequence, or answers it from the files without
 * the model. Does not run steps.
 */
import { factsAsked, type KnownAnswer } from '../facts/ask.ts';
import type { Documents } from './documents.ts';
import { RequestError, toRequestError } from '../protocol/errors.ts';
import { FileFacts } from './fileFacts.ts';
import type { FileLedger } from './fileLedger.ts';
import type { LoadedModel } from './loadedModel.ts';
import { Parsing, RunningRequest } from './runningRequest.ts';
import type { EngineMessage, HostMessage } from '../protocol/messages.ts';
import type { PromptSize } from '../protocol/stats.ts';
import type { ChatTask, Priority, SamplingParams, Snippet, SummarizeTask, Task } from '../protocol/tasks.ts';
import { FolderRequest } from './folderRequest.ts';
import { type Presentation, RequestOutput } from './requestOutput.ts';
import { type ChatOptions, measureChat, prepareChat, wholeFile } from '../tasks/chatTask.ts';
import { prepareCommitMessage } from '../tasks/commitTask.ts';
import { completedDocument, prepareComplete } from '../tasks/completeTask.ts';
import { prepareEdit } from '../tasks/editTask.ts';
import { isGreeting, namesFile } from '../tasks/stockReplies.ts';
import { type PreparedRequest, prepareRaw } from '../tasks/preparedRequest.ts';
import { emptySummary, mayNeedOutline, measureSummarize, prepareSummarize } from '../tasks/summarizeTask.ts';
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import type { Syntax } from '../text/syntax/syntax.ts';
import { MAX_TREES } from '../text/syntax/syntaxTrees.ts';

type Generate = Extract<HostMessage, { type: 'generate' }>;
type CompletionTask = Extract<Task, { kind: 'complete' }>;
type FolderTask = Extract<Task, { kind: 'summarizeFolder' }>;
/** A selection has a line. */
const isWhole = ({ startLine }: Snippet): boolean => startLine === undefined;

type Measure = Extract<HostMessage, { type: 'measure' }>;
type Asker = Pick<Generate, 'requestId' | 'clientId'>;

/** The files of a chat whose trees are needed: for outlines of what does not fit, and to check a small model's text. */
function treesFor({ docs, snippets = [] }: ChatOptions, { layout, text }: LoadedModel): SourceDocument[] {
  const files = [...docs, ...snippets.filter(isWhole).map(wholeFile)];
  const numUnits = files.reduce((sum, { lf }) => sum + lf.length, 0);
  return text.manifest.chat.facts || numUnits > layout.contextTokens ? files : [];
}

export class Requests {
  readonly facts: FileFacts;
  readonly #running = new Map<string, RunningRequest>();
  readonly #documents: Documents;
  readonly #sources: Documents;
  readonly #files: FileLedger;
  readonly #syntax: Syntax;
  readonly #emit: (message: EngineMessage) => void;
  readonly #parsing: Parsing;

  constructor(
    documents: Documents,
    sources: Documents,
    files: FileLedger,
    syntax: Syntax,
    emit: (message: EngineMessage) => void,
  ) {
    this.#documents = documents;
    this.#sources = sources;
    this.#files = files;
    this.#syntax = syntax;
    this.facts = new FileFacts(syntax);
    this.#emit = emit;
    this.#parsing = new Parsing(syntax, (requestId, error) => this.#refuse(requestId, toRequestError(error)));
  }

  get size(): number {
    return this.#running.size + this.#parsing.size;
  }

  /** Requests that wait for syntax trees. The engine does not know them yet. */
  get numWaiting(): number {
    return this.#parsing.size;
  }

  has(requestId: string): boolean {
    return this.#running.has(requestId) || this.#parsing.has(requestId);
  }

  /**
   * @param onReady called when work reaches the engine after this has returned
   * @throws RequestError for a task that cannot be prepared. Then nothing was started.
   */
  start(message: Generate, model: LoadedModel, onReady: () => void): void {
    const { task, priority, sampling } = message;
    if (task.kind === 'summarizeFolder') return this.#folder(message, task, model, onReady);
    if (task.kind === 'chat') return this.#chat(message, task, model, onReady);
    if (task.kind === 'summarize') return this.#summary(message, task, model, onReady);
    if (task.kind === 'complete') return this.#completion(message, task, model, onReady);
    this.#begin(message, this.#prepare(task, sampling, model), priority, model);
  }

  #completion(message: Generate, task: CompletionTask, model: LoadedModel, onReady: () => void): void {
    const { document, offset } = completedDocument(this.#documents.get(task.docId), task);
    const copySources = task.copySources?.flatMap((docId) =>
      docId === task.docId ? [] : (this.#documents.find(docId) ?? this.#sources.find(docId) ?? []),
    );
    const prepare = (doc: SourceDocument) =>
      prepareComplete(model.layout, doc, { ...task, offset, copySources }, message.sampling, this.#syntax);
    this.#files.cursorAt(task.docId, task.offset);
    this.#parsing.whenParsed(message, [document], onReady, ([doc = document], waiting) => {
      this.#begin(message, prepare(doc), waiting.priority, model);
      if (waiting.aborted) this.abort(message.requestId, model);
    });
  }

  /** Answers commands, and if the manifest allows it some questions, from the files. */
  #chat(message: Generate, task: ChatTask, model: LoadedModel, onReady: () => void): void {
    const { can, chat } = model.text.manifest;
    const options = this.#chatOptions(task);
    const asked = task.asIs ? undefined : factsAsked(options, this.facts.language, can.chat && chat.facts);
    const startMs = performance.now();
    const wanted = asked?.documents ?? [];
    const others = treesFor(options, model)
      .filter(({ docId }) => wanted.every((doc) => doc.docId !== docId))
      .slice(0, Math.max(0, MAX_TREES - wanted.length));
    this.#parsing.whenParsed(message, [...wanted, ...others], onReady, (parsed, waiting) => {
      const isOfCode =
        chat.facts && asked?.isSummary && !task.anyway && !namesFile(options.messages.at(-1)?.content ?? '');
      const known = waiting.aborted
        ? undefined
        : (asked?.answer(parsed.slice(0, wanted.length), this.facts.of) ??
          (isOfCode ? this.facts.readSelection(options, asked?.language) : undefined));
      if (known) return this.#answer(message, known, startMs);
      // An aborted request ends as such, not with a refusal.
      const { aborted } = waiting;
      const asking = { ...options, isSummary: asked?.isSummary ?? false, ...(aborted ? { anyway: true } : {}) };
      const prepared = prepareChat(model.layout, asking, message.sampling);
      const isChecked = chat.facts && !asking.anyway && !task.asIs && !isGreeting(task.messages.at(-1)?.content ?? '');
      const checked = isChecked ? this.facts.checkedAnswer(prepared, options, asked, model.layout) : prepared;
      this.#begin(message, checked, waiting.priority, model);
      if (waiting.aborted) this.abort(message.requestId, model);
    });
  }

  /** If the manifest allows it, the summary is the comment, or what a file of another language defines. */
  #summary(message: Generate, { docId, range }: SummarizeTask, model: LoadedModel, onReady: () => void): void {
    const document = this.#documents.get(docId);
    const nothing = emptySummary(model.layout, document);
    if (nothing) return this.#answer(message, nothing, performance.now());
    const startMs = performance.now();
    const isRead = model.text.manifest.chat.facts;
    const needsTree = isRead || (range === undefined && mayNeedOutline(model.layout, document));
    this.#parsing.whenParsed(message, needsTree ? [document] : [], onReady, ([doc = document], waiting) => {
      const known = isRead && !waiting.aborted ? this.facts.readSummary(doc, range, model.layout) : undefined;
      if (known) return this.#answer(message, known, startMs);
      const prepared = prepareSummarize(model.layout, doc, range, message.sampling, this.facts.outlinesOf);
      const checked = isRead ? this.facts.checkedSummary(prepared, doc, model.layout) : prepared;
      this.#begin(message, checked, waiting.priority, model);
      if (waiting.aborted) this.abort(message.requestId, model);
    });
  }

  /** Answers without the model. */
  #answer(asker: Asker, { text, note, source }: KnownAnswer, startMs: number): void {
    const running = this.#open(asker, {
      shape: (raw) => ({ text: raw, stop: false, source }),
      notes: note === undefined ? [] : [note],
      withAlternatives: false,
    });
    running.output.addText(text);
    const timings = { queueMs: 0, ttftMs: performance.now() - startMs, tpotMs: 0 };
    running.close((output) =>
      output.finish({
        finishReason: 'stop',
        usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 0, blockTokens: 0 },
        timings,
      }),
    );
  }

  abort(requestId: string, model: LoadedModel): void {
    this.#parsing.abort(requestId);
    this.#running.get(requestId)?.abort(model);
  }

  prioritise(requestId: string, priority: Priority, model: LoadedModel): void {
    this.#parsing.prioritise(requestId, priority);
    this.#running.get(requestId)?.prioritise(priority, model);
  }

  /** Ends every request with this error. The caller drops their sequences with the engine. */
  failAll(error: RequestError): void {
    for (const requestId of this.#parsing.clear()) this.#refuse(requestId, error);
    for (const running of [...this.#running.values()]) running.close((output) => output.fail(error));
  }

  #refuse(requestId: string, { code, message }: RequestError): void {
    this.#emit({ type: 'error', requestId, code, message });
  }

  #begin(asker: Asker, prepared: PreparedRequest, priority: Priority, model: LoadedModel): void {
    if (prepared.known) return this.#answer(asker, prepared.known, performance.now());
    const running = this.#open(asker, { ...prepared, withAlternatives: prepared.sampling.topLogprobs > 0 });
    running.run(asker.requestId, prepared, { priority, model, files: this.#files, documents: this.#documents }).then(
      (outcome) => running.close((output) => output.finish(outcome)),
      (error: unknown) => running.close((output) => output.fail(toRequestError(error))),
    );
  }

  /**
   * Gives `onSize` the size of the prompt in tokens, when the outlines are known. Does not run it.
   * @throws the errors of `start`
   */
  measure({ requestId, task, sampling }: Measure, model: LoadedModel, onSize: (size: PromptSize) => void): void {
    const { layout } = model;
    const whenParsed = (documents: readonly SourceDocument[], size: () => PromptSize) =>
      this.#parsing.whenParsed(
        { requestId, priority: 'chat' },
        documents,
        () => {},
        () => onSize(size()),
      );
    if (task.kind === 'summarize') {
      const document = this.#documents.get(task.docId);
      const needsTree = task.range === undefined && mayNeedOutline(layout, document);
      return whenParsed(needsTree ? [document] : [], () =>
        measureSummarize(layout, document, task.range, sampling, this.facts.outlinesOf),
      );
    }
    const options = this.#chatOptions(task);
    whenParsed(treesFor(options, model).slice(0, MAX_TREES), () => measureChat(layout, options, sampling));
  }

  #prepare(
    task: Exclude<Task, { kind: 'summarizeFolder' | 'complete' | 'chat' | 'summarize' }>,
    sampling: SamplingParams | undefined,
    { layout }: LoadedModel,
  ): PreparedRequest {
    switch (task.kind) {
      case 'raw':
        return prepareRaw(layout, task.prompt, sampling);
      case 'edit':
        return prepareEdit(layout, this.#documents.get(task.docId), task, sampling);
      case 'commitMessage':
        return prepareCommitMessage(layout, task, sampling);
      default:
        throw new RequestError('badRequest', `unknown task ${JSON.stringify((task as Task).kind)}`);
    }
  }

  #chatOptions({ messages, docIds, snippets, cursor, anyway, asIs }: ChatTask): ChatOptions {
    return {
      messages,
      docs: docIds.map((id) => this.#documents.get(id)),
      definitions: this.facts.definitionsOf,
      ...(snippets ? { snippets } : {}),
      ...(cursor === undefined ? {} : { cursor }),
      ...(anyway ? { anyway } : {}),
      ...(asIs ? { asIs } : {}),
    };
  }

  #open({ requestId, clientId = requestId }: Asker, presentation: Presentation): RunningRequest {
    const output = new RequestOutput(requestId, presentation, this.#emit);
    const running = new RunningRequest(clientId, output, () => this.#running.delete(requestId));
    this.#running.set(requestId, running);
    return running;
  }

  #folder(asker: Generate, task: FolderTask, model: LoadedModel, onReady: () => void): void {
    const { requestId, priority, sampling } = asker;
    const { facts } = model.text.manifest.chat;
    const notes: string[] = [];
    const running = this.#open(asker, {
      shape: (text) => ({ text, stop: false }),
      notes,
      withAlternatives: false,
    });
    void new FolderRequest(running, notes, {
      requestId,
      task,
      sampling,
      priority,
      model,
      files: this.#files,
      documents: this.#documents,
      needsTree: (document) => facts || mayNeedOutline(model.layout, document),
      readSummary: (document) => (facts ? this.facts.readSummary(document, undefined, model.layout) : undefined),
      checked: (prepared, document) => (facts ? this.facts.checkedSummary(prepared, document, model.layout) : prepared),
      parse: (document) => this.#syntax.prepare(document),
      outlinesOf: this.facts.outlinesOf,
      emit: this.#emit,
      onReady,
    }).run();
  }
}
