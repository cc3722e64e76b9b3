/** Summarizes a folder: one sequence per file, all in one batch, then one for the folder. Does not choose the files. */
import { t } from '@vscode/l10n';
import { toRequestError } from '../protocol/errors.ts';
import type { EngineMessage } from '../protocol/messages.ts';
import type { KnownAnswer } from '../facts/ask.ts';
import type { SamplingParams, Task } from '../protocol/tasks.ts';
import {
  type FileSummary,
  fileNotes,
  type OutlinesOf,
  prepareSummarize,
  summarizeFolder,
} from '../tasks/summarizeTask.ts';
import type { PreparedRequest } from '../tasks/preparedRequest.ts';
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import { lengthNote, type Outcome, outcomeOf } from './requestOutput.ts';
import type { OnText, RunningRequest, RunOptions } from './runningRequest.ts';

type FolderTask = Extract<Task, { kind: 'summarizeFolder' }>;

interface FolderRequestOptions extends Omit<RunOptions, 'onText'> {
  readonly requestId: string;
  readonly task: FolderTask;
  readonly sampling: SamplingParams | undefined;
  /** Whether the next two read the syntax tree. */
  readonly needsTree: (document: SourceDocument) => boolean;
  /** What is read in the file. Then the model is not asked. */
  readonly readSummary: (document: SourceDocument) => KnownAnswer | undefined;
  /** Checks the text of the model. */
  readonly checked: (prepared: PreparedRequest, document: SourceDocument) => PreparedRequest;
  /** Parses a document, so that reading it is fast. */
  readonly parse: (document: SourceDocument) => Promise<void> | undefined;
  readonly outlinesOf: OutlinesOf;
  readonly emit: (message: EngineMessage) => void;
  /** Called when the engine has new work. */
  readonly onReady: () => void;
}

/** Lists as text for one line, without a title: "Classes:" above "- A" and "- B" becomes "Classes: A, B". */
const inLine = (text: string): string =>
  text
    .replace(/^[^\n]*:\n\n(?=[^\n]*:\n)/, '')
    .replace(/:\n+\s*- /g, ': ')
    .replace(/\n+\s*- /g, ', ')
    .replace(/\s*\n\s*/g, '; ');

export class FolderRequest {
  readonly #running: RunningRequest;
  readonly #options: FolderRequestOptions;
  /** Notes for the user. The output sends them at its end. */
  readonly #notes: string[];
  readonly #outcomes: Outcome[] = [];
  readonly #started = performance.now();
  #numDone = 0;

  constructor(running: RunningRequest, notes: string[], options: FolderRequestOptions) {
    this.#running = running;
    this.#notes = notes;
    this.#options = options;
  }

  /** Runs the request to its end. Never rejects. */
  async run(): Promise<void> {
    const running = this.#running;
    const { task, sampling, model } = this.#options;
    try {
      const summaries = await Promise.all(task.docIds.map((docId, i) => this.#file(docId, i)));
      // The request may have failed with its engine.
      if (running.isClosed) return;
      let ttftMs = 0;
      if (!running.isAborted && outcomeOf(this.#outcomes).finishReason !== 'abort') {
        const made = summaries.filter((summary) => summary !== undefined);
        const whole = summarizeFolder(model.layout, task.path, [...(task.summaries ?? []), ...made], sampling);
        ttftMs = performance.now() - this.#started;
        if (whole.kind === 'text') running.output.addText(whole.text);
        else ttftMs += (await this.#whole(whole.request)).timings.ttftMs;
      }
      const total = outcomeOf(this.#outcomes);
      const finishReason = running.isAborted ? 'abort' : total.finishReason;
      running.close((output) => output.finish({ ...total, finishReason, timings: { ...total.timings, ttftMs } }));
    } catch (error) {
      running.close((output) => output.fail(toRequestError(error)));
    }
  }

  /** Summarizes one file. A file that fails becomes a note, and the other files continue. */
  async #file(docId: string, index: number): Promise<FileSummary | undefined> {
    const { task, documents, emit, requestId } = this.#options;
    try {
      const document = documents.get(docId);
      return await this.#summarize(document, task.paths?.[index] ?? document.path, index);
    } catch (error) {
      const { message } = toRequestError(error);
      this.#notes.push(`${task.paths?.[index] ?? docId}: ${message}`);
      return undefined;
    } finally {
      if (!this.#running.isClosed)
        emit({ type: 'progress', requestId, numDone: ++this.#numDone, numTotal: task.docIds.length });
    }
  }

  async #summarize(document: SourceDocument, path: string, index: number): Promise<FileSummary | undefined> {
    const { model, sampling, needsTree, readSummary, checked, parse, outlinesOf, requestId, onReady } = this.#options;
    if (needsTree(document)) {
      await parse(document);
      if (this.#running.isAborted || this.#running.isClosed) return undefined;
    }
    const read = readSummary(document);
    if (read) return this.#known(path, read);
    const prepared = checked(prepareSummarize(model.layout, document, undefined, sampling, outlinesOf), document);
    if (prepared.known) {
      this.#notes.push(prepared.known.text.replace(document.path, () => path));
      return undefined;
    }
    let raw = '';
    let cut: string | undefined;
    const running = this.#sequence(`${requestId}/${index}`, prepared, (text) => {
      raw += text;
      const shaped = prepared.shape(raw, false);
      cut ??= shaped.note;
      return shaped.stop;
    });
    onReady();
    const outcome = await running;
    const { text, note, source } = prepared.shape(raw, true);
    if (source !== undefined) return this.#known(path, { text, source });
    const own = fileNotes(document.path, [...prepared.notes, note ?? cut, ...lengthNote(prepared, outcome)]);
    return { path, text, note: own || undefined };
  }

  /** A summary that the model did not write. A refusal becomes a note. */
  #known(path: string, { text, source }: Pick<KnownAnswer, 'text' | 'source'>): FileSummary | undefined {
    if (source !== 'refused') return { path, text: inLine(text), note: t('not written by the model') };
    this.#notes.push(`${path}: ${text}`);
    return undefined;
  }

  /** Streams the summary of the whole folder to the output. */
  async #whole(prepared: PreparedRequest): Promise<Outcome> {
    const { output } = this.#running;
    let raw = '';
    let cut: string | undefined;
    this.#notes.push(...prepared.notes);
    const outcome = await this.#sequence(this.#options.requestId, prepared, (text) => {
      const before = prepared.shape(raw, false).text.length;
      raw += text;
      const shaped = prepared.shape(raw, false);
      output.addText(shaped.text.slice(before));
      cut ??= shaped.note;
      return shaped.stop;
    });
    const shaped = prepared.shape(raw, true);
    output.addText(shaped.text.slice(prepared.shape(raw, false).text.length));
    const note = shaped.note ?? cut;
    if (note !== undefined) this.#notes.push(note);
    return outcome;
  }

  async #sequence(id: string, prepared: PreparedRequest, onText: OnText): Promise<Outcome> {
    const { priority, model, files, documents } = this.#options;
    const outcome = await this.#running.run(id, prepared, { priority, model, files, documents, onText });
    this.#outcomes.push(outcome);
    return outcome;
  }
}
