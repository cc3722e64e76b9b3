/**
 * Summarizes a folder by map-reduce: each file, a few at a time at the lowest priority, then one overview. Does not
 * know the editor's files or how the result is shown. Memory stays bounded: a file's text is in the engine only while
 * its summary is made.
 */
import { messageOf } from '../format.ts';
import { RequestError } from '../../engine/protocol/errors.ts';
import type { Task } from '../../engine/protocol/tasks.ts';
import type { Done } from '../client/connection.ts';
import type { EngineClient } from '../client/engineClient.ts';
import type { KnownSummary, SummaryCache } from './summaryCache.ts';

export interface FolderFile {
  /** Relative to the folder. */
  path: string;
  /** The text, or why it is not read. */
  read(): Promise<{ text: string } | { skipped: string }>;
  /** Sends the text to the engine and returns its id. Called when the request is sent. */
  open(text: string): string;
  /** Called when the engine no longer needs it. */
  close(): void;
}

export interface FolderResult {
  /** The overview; empty for a model that only makes a list. */
  overview: string;
  /** Each with the notes of its summary. */
  files: { path: string; summary: string; notes: readonly string[] }[];
  skipped: { path: string; reason: string }[];
  /** How many summaries were made now. The others were in the cache. */
  numComputed: number;
  /** Notes of the overview. */
  notes: string[];
}

export interface FolderOptions {
  client: Pick<EngineClient, 'generate' | 'disposed'>;
  cache: SummaryCache;
  /** The folder's name in the prompt. */
  folder: string;
  files: readonly FolderFile[];
  maxTokens: number;
  signal: AbortSignal;
  onProgress(numDone: number, numTotal: number): void;
}

/** Number of files summarized at the same time. */
const AT_ONCE = 4;

/** The requests of one folder summary share one client id. */
let numRuns = 0;
type Run = FolderOptions & { clientId: string };

/** Undefined when cancelled; finished summaries are in the cache. Rejects when the engine cannot summarize any file. */
export async function summarizeFolder(options: FolderOptions): Promise<FolderResult | undefined> {
  const { files, cache, signal, onProgress } = options;
  const run: Run = { ...options, clientId: `folder ${++numRuns}` };
  const result: FolderResult = { overview: '', files: [], skipped: [], numComputed: 0, notes: [] };
  const summaries = new Map<FolderFile, KnownSummary>();
  const failures: unknown[] = [];
  let numDone = 0;
  let next = 0;
  const work = async () => {
    for (let file = files[next++]; file && !signal.aborted; file = files[next++]) {
      try {
        const summary = await summaryOf(file, run, result);
        if (summary !== undefined) summaries.set(file, summary);
      } catch (error) {
        failures.push(error);
        result.skipped.push({ path: file.path, reason: messageOf(error) });
      }
      onProgress(++numDone, files.length);
    }
  };
  onProgress(0, files.length);
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (signal.aborted) return undefined;
    result.files = files.flatMap((file) => {
      const known = summaries.get(file);
      return known ? [{ path: file.path, summary: known.text, notes: known.notes }] : [];
    });
    if (!result.files.length && failures.length) throw failures[0];
    if (result.files.length) await reduce(run, result);
    return signal.aborted ? undefined : result;
  } finally {
    await cache.save();
  }
}

async function summaryOf(file: FolderFile, run: Run, result: FolderResult): Promise<KnownSummary | undefined> {
  const source = await file.read();
  if ('skipped' in source) {
    result.skipped.push({ path: file.path, reason: source.skipped });
    return undefined;
  }
  const question = ['file', file.path];
  const { cache } = run;
  const known = cache.get(question, source.text);
  if (known !== undefined) return known;
  try {
    const done = await generated(run, () => ({ kind: 'summarize', docId: file.open(source.text) }));
    if (!done) return undefined;
    // A text that the model did not write is the reason why there is no summary.
    const wasAsked = done.usage.promptTokens > 0;
    if (wasAsked) result.numComputed++;
    if (!done.text || !wasAsked) {
      result.skipped.push({ path: file.path, reason: done.text || done.diagnostics.join('; ') });
      return undefined;
    }
    const summary = { text: done.text, notes: done.diagnostics };
    cache.set(question, source.text, summary);
    return summary;
  } finally {
    file.close();
  }
}

/** Undefined when cancelled. */
async function generated({ client, clientId, maxTokens, signal }: Run, task: () => Task): Promise<Done | undefined> {
  const sampling = maxTokens ? { sampling: { maxTokens } } : {};
  const done = await client.generate({ task, priority: 'summary', clientId, ...sampling, signal });
  return done.finishReason === 'abort' ? undefined : done;
}

interface Summary {
  path: string;
  text: string;
}

/** One text about all files. A failure here costs only the overview. */
async function reduce(options: Run, result: FolderResult): Promise<void> {
  const { cache, folder } = options;
  const summaries = result.files.map(({ path, summary }) => ({ path, text: summary }));
  const question = ['folder', folder];
  const made = JSON.stringify(summaries);
  const known = cache.get(question, made);
  if (known !== undefined) {
    result.overview = known.text;
    result.notes.push(...known.notes);
    return;
  }
  try {
    const overview = await joined(options, summaries, result);
    if (overview === undefined) return;
    result.overview = overview;
    cache.set(question, made, { text: overview, notes: [...result.notes] });
  } catch (error) {
    result.notes.push(messageOf(error));
  }
}

/**
 * Splits the files in two halves if all are too long for the model. Empty for a model that only makes a list; undefined
 * when cancelled.
 */
async function joined(options: Run, summaries: readonly Summary[], result: FolderResult): Promise<string | undefined> {
  const { folder } = options;
  try {
    const done = await generated(options, () => ({
      kind: 'summarizeFolder',
      path: folder,
      docIds: [],
      summaries: [...summaries],
    }));
    if (!done) return undefined;
    result.notes.push(...done.diagnostics);
    return done.usage.promptTokens > 0 ? done.text : '';
  } catch (error) {
    if (!(error instanceof RequestError) || error.code !== 'contextTooLong' || summaries.length < 3) throw error;
    const middle = Math.ceil(summaries.length / 2);
    const parts: Summary[] = [];
    for (const half of [summaries.slice(0, middle), summaries.slice(middle)]) {
      const text = await joined(options, half, result);
      if (text === undefined) return undefined;
      parts.push({ path: half.length > 1 ? `${half[0]?.path} to ${half.at(-1)?.path}` : (half[0]?.path ?? ''), text });
    }
    return joined(options, parts, result);
  }
}
