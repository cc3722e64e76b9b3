/**
 * The life of a request: it waits until the syntax trees of its documents are parsed, then its sequences run. Does not
 * prepare prompts or read messages.
 */
import { toRequestError } from '../protocol/errors.ts';
import type { Priority } from '../protocol/tasks.ts';
import { Sequence } from '../sequence/sequence.ts';
import type { PreparedRequest } from '../tasks/preparedRequest.ts';
import { Reasoning } from '../tasks/reasoning.ts';
import type { Documents } from './documents.ts';
import type { FileLedger } from './fileLedger.ts';
import type { LoadedModel } from './loadedModel.ts';
import type { Outcome, RequestOutput } from './requestOutput.ts';
import { SourceDocument } from '../text/syntax/sourceDocument.ts';
import type { Syntax } from '../text/syntax/syntax.ts';

/** Takes generated text. Returns true if the text is complete. */
export type OnText = (text: string) => boolean;

export class RunningRequest {
  readonly clientId: string;
  readonly output: RequestOutput;
  /** Whether the output has sent its `done` or `error`. */
  isClosed = false;
  /** An aborted request starts no more sequences. */
  isAborted = false;
  /** Sequences that have not ended. */
  readonly #sequenceIds = new Set<string>();

  readonly #onClose: () => void;

  /** @param onClose called once, before the last message is sent */
  constructor(clientId: string, output: RequestOutput, onClose: () => void) {
    this.clientId = clientId;
    this.output = output;
    this.#onClose = onClose;
  }

  abort({ engine }: LoadedModel): void {
    this.isAborted = true;
    for (const id of this.#sequenceIds) engine.abort(id);
  }

  prioritise(priority: Priority, { engine }: LoadedModel): void {
    for (const id of this.#sequenceIds) engine.prioritise(id, priority);
  }

  /** Ends the output, once. */
  close(end: (output: RequestOutput) => void): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#onClose();
    try {
      end(this.output);
    } catch (error) {
      this.output.fail(toRequestError(error));
    }
  }

  /** Runs one sequence to its end. Its tokens go to the output, or its text to `onText`. */
  run(sequenceId: string, prepared: PreparedRequest, options: RunOptions): Promise<Outcome> {
    const { priority, model, files, documents, onText } = options;
    return new Promise<Outcome>((resolve, reject) => {
      const sequence = new Sequence({
        id: sequenceId,
        clientId: this.clientId,
        priority,
        promptIds: prepared.promptIds,
        prefill: prepared.prefill,
        sampling: prepared.sampling,
        eosIds: prepared.stopTokenIds,
        ...(prepared.opening ? { opening: prepared.opening } : {}),
        ...(prepared.reasoning ? { aside: new Reasoning(prepared.reasoning) } : {}),
        ...(prepared.prior ? { prior: prepared.prior } : {}),
        ...(prepared.draftSources ? { draftSources: prepared.draftSources } : {}),
        detokenizer: model.text.tokenizer.createDetokenizer(),
        onToken: (token) => {
          try {
            const isComplete = onText ? onText(token.text) : this.output.add(token);
            if (isComplete) model.engine.stop(sequenceId);
          } catch (error) {
            // An error in shaping ends this request only. The step and the other requests continue.
            model.engine.abort(sequenceId);
            reject(toRequestError(error));
          }
        },
        onFinish: (finishReason, rest) => {
          this.#sequenceIds.delete(sequenceId);
          try {
            if (rest) (onText ?? ((text) => this.output.addText(text)))(rest);
          } catch (error) {
            // As in onToken. A second rejection has no effect.
            reject(toRequestError(error));
          }
          if (prepared.docId !== null) {
            files.used(prepared.docId, prepared.blockTokens, sequence.cachedTokens);
            // Idle prefill computes rows again that were reused as an approximation.
            if (sequence.approximateTokens > 0 && documents.find(prepared.docId)) files.touch(prepared.docId);
          }
          resolve({ finishReason, usage: usageOf(sequence, prepared), timings: sequence.timings() });
        },
        onError: (error) => {
          this.#sequenceIds.delete(sequenceId);
          reject(error);
        },
      });
      this.#sequenceIds.add(sequenceId);
      model.engine.add(sequence);
    });
  }
}

export interface RunOptions {
  readonly priority: Priority;
  readonly model: LoadedModel;
  readonly files: FileLedger;
  readonly documents: Documents;
  readonly onText?: OnText;
}

function usageOf(sequence: Sequence, { blockTokens }: PreparedRequest): Outcome['usage'] {
  const { numPromptTokens, cachedTokens, numGenerated, numReasoned, inParts, approximateTokens } = sequence;
  return {
    promptTokens: numPromptTokens,
    cachedTokens,
    completionTokens: numGenerated,
    ...(numReasoned > 0 ? { reasoningTokens: numReasoned } : {}),
    blockTokens,
    ...(inParts ? { inParts: true } : {}),
    ...(approximateTokens > 0 ? { shiftedTokens: approximateTokens } : {}),
  };
}

interface Waiting {
  aborted: boolean;
  priority: Priority;
}

/** Holds requests until the syntax trees of their documents are parsed. The engine does not know them yet. */
export class Parsing {
  readonly #waiting = new Map<string, Waiting>();
  readonly #syntax: Syntax;
  readonly #onError: (requestId: string, error: unknown) => void;

  constructor(syntax: Syntax, onError: (requestId: string, error: unknown) => void) {
    this.#syntax = syntax;
    this.#onError = onError;
  }

  get size(): number {
    return this.#waiting.size;
  }

  has(requestId: string): boolean {
    return this.#waiting.has(requestId);
  }

  abort(requestId: string): void {
    const waiting = this.#waiting.get(requestId);
    if (waiting) waiting.aborted = true;
  }

  prioritise(requestId: string, priority: Priority): void {
    const waiting = this.#waiting.get(requestId);
    if (waiting) waiting.priority = priority;
  }

  /** Drops all waiting requests. @returns their ids */
  clear(): string[] {
    const ids = [...this.#waiting.keys()];
    this.#waiting.clear();
    return ids;
  }

  /**
   * Calls `begin` with the documents as they are now, when all syntax trees are parsed. If they are parsed already,
   * calls it at once and throws its errors. Otherwise its errors go to `onError`, and `onReady` is called after it.
   */
  whenParsed(
    { requestId, priority }: { requestId: string; priority: Priority },
    documents: readonly SourceDocument[],
    onReady: () => void,
    begin: (documents: readonly SourceDocument[], waiting: Waiting) => void,
  ): void {
    const waiting = { aborted: false, priority };
    const parsing = documents.flatMap((document) => this.#syntax.prepare(document) ?? []);
    if (parsing.length === 0) return begin(documents, waiting);
    this.#waiting.set(requestId, waiting);
    const asked = documents.map(
      ({ docId, fullPath, text, version, language }) => new SourceDocument(docId, fullPath, text, version, language),
    );
    void Promise.all(parsing).then(() => {
      if (!this.#waiting.delete(requestId)) return;
      try {
        // Later edits belong to the next request.
        begin(
          asked.map((then, i) => (documents[i]?.text === then.text ? documents[i] : then)),
          waiting,
        );
      } catch (error) {
        this.#onError(requestId, error);
      }
      onReady();
    });
  }
}
