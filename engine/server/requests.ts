/**
 * The requests in flight: a `generate` message becomes a prepared prompt, a sequence in the engine, and a Request that
 * reports it. A folder's summary is one request made of several sequences. Owns no messages beyond `generate` and `abort`.
 */
import { factsAsked, type KnownAnswer, summaryComment } from '../facts/ask.ts';
import { readFacts } from '../facts/extract/facts.ts';
import type { Language } from '../facts/words.ts';
import type { Documents } from './documents.ts';
import { RequestError } from '../protocol/errors.ts';
import type { FileLedger } from './fileLedger.ts';
import type { LoadedModel } from './loadedModel.ts';
import { Parsing } from './parsing.ts';
import type { EngineMessage, HostMessage } from '../protocol/messages.ts';
import type { PromptSize } from '../protocol/stats.ts';
import type { ChatTask, Priority, SamplingParams, SummarizeTask, Task } from '../protocol/tasks.ts';
import { type Outcome, outcomeOf, type Presentation, Request } from './request.ts';
import { Sequence } from '../sequence/sequence.ts';
import { type ChatOptions, measureChat, prepareChat } from '../tasks/chatTask.ts';
import { prepareCommitMessage } from '../tasks/commitTask.ts';
import { completedDocument, prepareComplete } from '../tasks/completeTask.ts';
import { prepareEdit } from '../tasks/editTask.ts';
import type { PreparedRequest } from '../tasks/preparedRequest.ts';
import { prepareRaw } from '../tasks/rawTask.ts';
import {
  emptySummary,
  type FileSummary,
  fileNotes,
  measureSummarize,
  prepareSummarize,
  summarizeFolder,
} from '../tasks/summarizeTask.ts';
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import type { Syntax } from '../text/syntax/syntax.ts';

type Generate = Extract<HostMessage, { type: 'generate' }>;
type Asker = Pick<Generate, 'requestId' | 'clientId'>;

interface Live {
  clientId: string;
  request: Request;
  /** Sequences of this request that have not ended. */
  sequenceIds: Set<string>;
  /** What has not begun is not to. */
  aborted: boolean;
}

function toRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  return new RequestError('engineFailed', error instanceof Error ? error.message : String(error));
}

export class Requests {
  /** Of answers to commands, which are in no language. */
  language: Language = 'en';
  readonly #live = new Map<string, Live>();
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
    this.#emit = emit;
    this.#parsing = new Parsing(syntax, (requestId, error) => this.#refuse(requestId, toRequestError(error)));
  }

  get size(): number {
    return this.#live.size + this.#parsing.size;
  }

  /** Requests that the engine does not know of yet. */
  get numWaiting(): number {
    return this.#parsing.size;
  }

  has(requestId: string): boolean {
    return this.#live.has(requestId) || this.#parsing.has(requestId);
  }

  /**
   * `onReady` is called when the engine has work that it had not when this returned.
   * @throws RequestError for a task that cannot be prepared; nothing has been started then.
   */
  start(message: Generate, model: LoadedModel, onReady: () => void): void {
    const { task, priority, sampling } = message;
    if (task.kind === 'summarizeFolder') return void this.#folder(message, task, priority, sampling, model, onReady);
    if (task.kind === 'chat') return this.#chat(message, task, model, onReady);
    if (task.kind === 'summarize') return this.#summary(message, task, model, onReady);
    if (task.kind !== 'complete') return this.#begin(message, this.#prepare(task, sampling, model), priority, model);
    const { document, offset } = completedDocument(this.#documents.get(task.docId), task);
    const copySources = task.copySources?.flatMap((docId) =>
      docId === task.docId ? [] : (this.#documents.find(docId) ?? this.#sources.find(docId) ?? []),
    );
    const prepare = (doc: SourceDocument) =>
      prepareComplete(
        model.layout,
        doc,
        {
          offset,
          multiline: task.multiline,
          snippets: task.snippets,
          copySources,
          showLowConfidence: task.showLowConfidence,
        },
        sampling,
        this.#syntax,
      );
    this.#files.cursorAt(task.docId, task.offset);
    this.#parsing.whenParsed(message, [document], onReady, ([doc = document], waiting) => {
      this.#begin(message, prepare(doc), waiting.priority, model);
      if (waiting.aborted) this.abort(message.requestId, model);
    });
  }

  /** Commands are answered from the files. So are questions that they settle, where the model's manifest says so. */
  #chat(message: Generate, task: ChatTask, model: LoadedModel, onReady: () => void): void {
    const { can, chat } = model.text.manifest;
    const options = this.#chatOptions(task);
    const asked = factsAsked(options, this.language, can.chat && chat.facts);
    const startMs = performance.now();
    this.#parsing.whenParsed(message, asked?.documents ?? [], onReady, (documents, waiting) => {
      const known = waiting.aborted ? undefined : asked?.answer(documents, this.#factsOf);
      if (known) return this.#answer(message, known, startMs);
      this.#begin(message, prepareChat(model.layout, options, message.sampling), waiting.priority, model);
      if (waiting.aborted) this.abort(message.requestId, model);
    });
  }

  /** The comment of what is summarised is its summary, where the model's manifest says so. */
  #summary(message: Generate, { docId, range }: SummarizeTask, model: LoadedModel, onReady: () => void): void {
    const document = this.#documents.get(docId);
    const nothing = emptySummary(model.layout, document);
    if (nothing) return this.#answer(message, nothing, performance.now());
    const startMs = performance.now();
    const isRead = model.text.manifest.chat.facts;
    const label = range?.label;
    this.#parsing.whenParsed(message, isRead && label ? [document] : [], onReady, ([doc = document], waiting) => {
      const known = isRead && !waiting.aborted ? this.#commentOf(doc, range) : undefined;
      if (known) return this.#answer(message, known, startMs);
      const prepared = prepareSummarize(model.layout, doc, range, message.sampling);
      this.#begin(message, prepared, waiting.priority, model);
      if (waiting.aborted) this.abort(message.requestId, model);
    });
  }

  /** Undefined for selections, and where there is no comment. */
  #commentOf(document: SourceDocument, range?: SummarizeTask['range']): KnownAnswer | undefined {
    if (!range) return summaryComment(document, undefined, this.#factsOf);
    const { start, end, label } = range;
    return label
      ? summaryComment(document, { start: document.toLf(start), end: document.toLf(end), label }, this.#factsOf)
      : undefined;
  }

  readonly #factsOf = (document: SourceDocument) => readFacts(this.#syntax, document);

  /** Without the model. */
  #answer(asker: Asker, { text, note, source }: KnownAnswer, startMs: number): void {
    const { request } = this.#open(asker, {
      shape: (raw) => ({ text: raw, stop: false, source }),
      notes: note === undefined ? [] : [note],
      withAlternatives: false,
    });
    request.addText(text);
    const timings = { queueMs: 0, ttftMs: performance.now() - startMs, tpotMs: 0 };
    this.#close(asker.requestId, () =>
      request.finish({
        finishReason: 'stop',
        usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 0, blockTokens: 0 },
        timings,
      }),
    );
  }

  abort(requestId: string, model: LoadedModel): void {
    this.#parsing.abort(requestId);
    const live = this.#live.get(requestId);
    if (live) live.aborted = true;
    for (const id of live?.sequenceIds ?? []) model.engine.abort(id);
  }

  prioritise(requestId: string, priority: Priority, model: LoadedModel): void {
    this.#parsing.prioritise(requestId, priority);
    for (const id of this.#live.get(requestId)?.sequenceIds ?? []) model.engine.prioritise(id, priority);
  }

  /** Ends every request with this error; the caller drops their sequences with the engine. */
  failAll(error: RequestError): void {
    for (const requestId of this.#parsing.clear()) this.#refuse(requestId, error);
    for (const id of [...this.#live.keys()]) this.#close(id, (request) => request.fail(error));
  }

  #refuse(requestId: string, { code, message }: RequestError): void {
    this.#emit({ type: 'error', requestId, code, message });
  }

  #begin(asker: Asker, prepared: PreparedRequest, priority: Priority, model: LoadedModel): void {
    if (prepared.known) return this.#answer(asker, prepared.known, performance.now());
    const { requestId } = asker;
    const live = this.#open(asker, { ...prepared, withAlternatives: prepared.sampling.topLogprobs > 0 });
    this.#run(live, requestId, prepared, priority, model).then(
      (outcome) => this.#close(requestId, (request) => request.finish(outcome)),
      (error: unknown) => this.#close(requestId, (request) => request.fail(toRequestError(error))),
    );
  }

  /** What the prompt would take. @throws RequestError for a task that `start` would refuse. */
  measure(task: ChatTask | SummarizeTask, sampling: SamplingParams | undefined, { layout }: LoadedModel): PromptSize {
    if (task.kind === 'summarize')
      return measureSummarize(layout, this.#documents.get(task.docId), task.range, sampling);
    return measureChat(layout, this.#chatOptions(task), sampling);
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

  #chatOptions({ messages, docIds, snippets, cursor }: ChatTask): ChatOptions {
    return {
      messages,
      docs: docIds.map((id) => this.#documents.get(id)),
      ...(snippets ? { snippets } : {}),
      ...(cursor === undefined ? {} : { cursor }),
    };
  }

  #open({ requestId, clientId = requestId }: Asker, presentation: Presentation): Live {
    const live = {
      clientId,
      request: new Request(requestId, presentation, this.#emit),
      sequenceIds: new Set<string>(),
      aborted: false,
    };
    this.#live.set(requestId, live);
    return live;
  }

  #close(requestId: string, end: (request: Request) => void): void {
    const live = this.#live.get(requestId);
    if (!live) return;
    this.#live.delete(requestId);
    try {
      end(live.request);
    } catch (error) {
      live.request.fail(toRequestError(error));
    }
  }

  /** One sequence from start to end, its tokens going to `live`'s request unless `onText` takes the text. */
  #run(
    live: Live,
    sequenceId: string,
    prepared: PreparedRequest,
    priority: Priority,
    model: LoadedModel,
    onText?: (text: string) => boolean,
  ): Promise<Outcome> {
    return new Promise<Outcome>((resolve, reject) => {
      const sequence = new Sequence({
        id: sequenceId,
        clientId: live.clientId,
        priority,
        promptIds: prepared.promptIds,
        prefill: prepared.prefill,
        sampling: prepared.sampling,
        eosIds: prepared.stopTokenIds,
        ...(prepared.opening ? { opening: prepared.opening } : {}),
        ...(prepared.prior ? { prior: prepared.prior } : {}),
        ...(prepared.draftSources ? { draftSources: prepared.draftSources } : {}),
        detokenizer: model.text.tokenizer.createDetokenizer(),
        onToken: (token) => {
          try {
            const complete = onText ? onText(token.text) : live.request.add(token);
            if (complete) model.engine.stop(sequenceId);
          } catch (error) {
            // A fault in showing this text is this request's own; the step and the others go on.
            model.engine.abort(sequenceId);
            reject(toRequestError(error));
          }
        },
        onFinish: (finishReason, rest) => {
          live.sequenceIds.delete(sequenceId);
          try {
            if (rest) (onText ?? ((text) => live.request.addText(text)))(rest);
          } catch (error) {
            // As above; whoever reads this promise hears of it, or has heard of the first one.
            reject(toRequestError(error));
          }
          const {
            numPromptTokens: promptTokens,
            cachedTokens,
            numGenerated: completionTokens,
            approximateTokens: shiftedTokens,
          } = sequence;
          if (prepared.docId !== null) this.#files.used(prepared.docId, prepared.blockTokens, cachedTokens);
          // Idle time goes on until no approximation is left.
          if (prepared.docId !== null && shiftedTokens > 0 && this.#documents.find(prepared.docId))
            this.#files.touch(prepared.docId);
          resolve({
            finishReason,
            usage: {
              promptTokens,
              cachedTokens,
              completionTokens,
              blockTokens: prepared.blockTokens,
              ...(sequence.inParts ? { inParts: true } : {}),
              ...(shiftedTokens > 0 ? { shiftedTokens } : {}),
            },
            timings: sequence.timings(),
          });
        },
        onError: (error) => {
          live.sequenceIds.delete(sequenceId);
          reject(error);
        },
      });
      live.sequenceIds.add(sequenceId);
      model.engine.add(sequence);
    });
  }

  /** Summaries of all files together, batched by the engine; a file that fails is named and the others go on. */
  async #folder(
    asker: Asker,
    task: Extract<Task, { kind: 'summarizeFolder' }>,
    priority: Priority,
    sampling: SamplingParams | undefined,
    model: LoadedModel,
    onReady: () => void,
  ): Promise<void> {
    const notes: string[] = [];
    const { requestId } = asker;
    const live = this.#open(asker, {
      shape: (rawText) => ({ text: rawText, stop: false }),
      notes,
      withAlternatives: false,
    });
    const parts: Outcome[] = [];
    /** Until something of it could be shown. */
    let ttftMs = 0;
    const started = performance.now();
    let numDone = 0;
    const one = async (docId: string, index: number): Promise<FileSummary | undefined> => {
      try {
        const document = this.#documents.get(docId);
        const path = task.paths?.[index] ?? document.path;
        const comment = model.text.manifest.chat.facts ? this.#commentOf(document) : undefined;
        if (comment) return { path, text: comment.text };
        const prepared = prepareSummarize(model.layout, document, undefined, sampling);
        if (prepared.known) {
          notes.push(prepared.known.text.replace(document.path, () => path));
          return undefined;
        }
        let raw = '';
        let cut: string | undefined;
        const running = this.#run(live, `${requestId}/${index}`, prepared, priority, model, (text) => {
          raw += text;
          const shaped = prepared.shape(raw, false);
          cut ??= shaped.note;
          return shaped.stop;
        });
        onReady();
        const outcome = await running;
        parts.push(outcome);
        const { text, note } = prepared.shape(raw, true);
        const own = fileNotes(document.path, [...prepared.notes, note ?? cut]);
        return { path, text, note: own || undefined };
      } catch (error) {
        notes.push(`${task.paths?.[index] ?? docId}: ${error instanceof Error ? error.message : String(error)}`);
        return undefined;
      } finally {
        if (this.#live.get(requestId) === live)
          this.#emit({ type: 'progress', requestId, numDone: ++numDone, numTotal: task.docIds.length });
      }
    };
    try {
      const made = (await Promise.all(task.docIds.map(one))).filter((summary) => summary !== undefined);
      // It has failed meanwhile, with its engine.
      if (this.#live.get(requestId) !== live) return;
      const summaries = [...(task.summaries ?? []), ...made];
      if (!live.aborted && outcomeOf(parts).finishReason !== 'abort') {
        const reduced = summarizeFolder(model.layout, task.path, summaries, sampling);
        ttftMs = performance.now() - started;
        if (reduced.kind === 'text') live.request.addText(reduced.text);
        else {
          let raw = '';
          let cut: string | undefined;
          notes.push(...reduced.request.notes);
          const outcome = await this.#run(live, requestId, reduced.request, priority, model, (text) => {
            const before = reduced.request.shape(raw, false).text.length;
            raw += text;
            const shaped = reduced.request.shape(raw, false);
            live.request.addText(shaped.text.slice(before));
            cut ??= shaped.note;
            return shaped.stop;
          });
          const shaped = reduced.request.shape(raw, true);
          live.request.addText(shaped.text.slice(reduced.request.shape(raw, false).text.length));
          const note = shaped.note ?? cut;
          if (note !== undefined) notes.push(note);
          parts.push(outcome);
          ttftMs += outcome.timings.ttftMs;
        }
      }
      const total = outcomeOf(parts);
      this.#close(requestId, (request) =>
        request.finish({
          ...total,
          ...(live.aborted ? { finishReason: 'abort' } : {}),
          timings: { ...total.timings, ttftMs },
        }),
      );
    } catch (error) {
      this.#close(requestId, (request) => request.fail(toRequestError(error)));
    }
  }
}
