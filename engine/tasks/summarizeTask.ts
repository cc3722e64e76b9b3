/**
 * Prepares the summary of a file, a symbol or a selection, with the question of the manifest, and of a folder, from the
 * summaries of its files. Runs nothing.
 */
import { t } from '@vscode/l10n';
import type { PromptSize } from '../protocol/stats.ts';
import type { SamplingParams } from '../protocol/tasks.ts';
import { countTokens } from '../text/prompt/attachedFiles.ts';
import { fenced } from '../text/prompt/fenced.ts';
import type { Layout } from '../text/prompt/layout.ts';
import type { Outline } from '../text/syntax/outline.ts';
import { SourceDocument } from '../text/syntax/sourceDocument.ts';
import type { KnownAnswer } from '../facts/ask.ts';
import { RequestError } from '../protocol/errors.ts';
import { type ChatOptions, measureAnswer, prepareAnswer } from './chatTask.ts';
import type { PreparedRequest } from './preparedRequest.ts';

export interface SummarizeRange {
  /** In the host's text. */
  start: number;
  end: number;
  /** The name of the symbol. Left out for a selection. */
  label?: string;
}

/** The outlines of a document, the longest first. Undefined or empty if it has none. */
export type OutlinesOf = (doc: SourceDocument) => readonly Outline[] | undefined;

/** Whether the file may be too long for the model, so that its outline may be asked for. Does not count tokens. */
export function mayNeedOutline({ contextTokens }: Layout, { lf }: SourceDocument): boolean {
  return lf.length > contextTokens;
}

/**
 * A file that is too long is summarized from its outline if that fits whole, else from its beginning.
 * @throws RequestError `badRequest` for a range outside the text, or a model that cannot summarize
 */
export function prepareSummarize(
  layout: Layout,
  doc: SourceDocument,
  range?: SummarizeRange,
  sampling?: SamplingParams,
  outlinesOf?: OutlinesOf,
): PreparedRequest {
  const { options, defaults } = asked(layout, doc, range);
  // The question about a selection contains its code.
  const ofFile = range === undefined || !!range.label;
  const prepare = (docs: readonly SourceDocument[]) =>
    prepareAnswer(layout, { ...options, docs }, defaults, sampling, ofFile);
  const whole = prepare(options.docs);
  const outlined = whole.notes.length > 0 ? fitting(outlinedDocs(layout, doc, range, outlinesOf), prepare) : undefined;
  // The outline is not the block of the file.
  return outlined ? { ...outlined.made, docId: null, blockTokens: 0, notes: [outlined.note] } : whole;
}

/** The size of the prompt of `prepareSummarize`. @throws the errors of `prepareSummarize` */
export function measureSummarize(
  layout: Layout,
  doc: SourceDocument,
  range?: SummarizeRange,
  sampling?: SamplingParams,
  outlinesOf?: OutlinesOf,
): PromptSize {
  const { options, defaults } = asked(layout, doc, range);
  const measure = (docs: readonly SourceDocument[]) => measureAnswer(layout, { ...options, docs }, defaults, sampling);
  const whole = measure(options.docs);
  const outlined = whole.notes.length > 0 ? fitting(outlinedDocs(layout, doc, range, outlinesOf), measure) : undefined;
  if (!outlined) return whole;
  const omittedTokens = countTokens(layout, doc.lf) - countTokens(layout, outlined.doc.lf);
  const parts = outlined.made.parts.map((part) => ({ ...part, omittedTokens }));
  return { ...outlined.made, parts, notes: [outlined.note] };
}

interface OutlinedDoc {
  doc: SourceDocument;
  /** Says for the user what is left out. */
  note: string;
}

/** The document with each of its outlines as text. None unless it is summarized as a whole. */
function outlinedDocs(
  layout: Layout,
  doc: SourceDocument,
  range: SummarizeRange | undefined,
  outlinesOf: OutlinesOf | undefined,
): OutlinedDoc[] {
  if (range !== undefined || !mayNeedOutline(layout, doc)) return [];
  return (outlinesOf?.(doc) ?? []).map(({ text, numLines }) => ({
    doc: new SourceDocument(doc.docId, doc.path, text, doc.version, doc.language),
    note: t('{0}: bodies of functions left out, {1} of {2} lines', doc.path, numLines, doc.numWrittenLines),
  }));
}

/** The first outline that is left whole, and what is made from it. */
function fitting<T extends { notes: readonly string[] }>(
  outlined: readonly OutlinedDoc[],
  make: (docs: readonly SourceDocument[]) => T,
): (OutlinedDoc & { made: T }) | undefined {
  for (const each of outlined) {
    const made = make([each.doc]);
    if (made.notes.length === 0) return { ...each, made };
  }
  return undefined;
}

/**
 * The summary of a file without text. Undefined for any other file.
 * @throws RequestError `badRequest` for a model that cannot summarize
 */
export function emptySummary(layout: Layout, { lf, path }: SourceDocument): KnownAnswer | undefined {
  summarizer(layout);
  return lf.trim() === ''
    ? {
        text: t('{0} is empty: there is nothing to summarize.', path),
        note: t('not written by the model'),
        source: 'files',
      }
    : undefined;
}

function asked(
  layout: Layout,
  doc: SourceDocument,
  range: SummarizeRange | undefined,
): { options: ChatOptions; defaults: SamplingParams } {
  const { summary } = summarizer(layout);
  if (range !== undefined && !(range.start >= 0 && range.start <= range.end && range.end <= doc.text.length)) {
    throw new RequestError(
      'badRequest',
      t('range {0}-{1} is outside {2}, which has {3} characters', range.start, range.end, doc.path, doc.text.length),
    );
  }
  const messages = [{ role: 'user' as const, content: question(layout, doc, range) }];
  return {
    options: { docs: [doc], messages, cursor: range?.start ?? 0, fill: range === undefined, enableThinking: false },
    defaults: { maxTokens: summary.maxTokens, temperature: 0 },
  };
}

function question(layout: Layout, doc: SourceDocument, range: SummarizeRange | undefined): string {
  const { summary } = layout.text.manifest;
  if (range === undefined) return summary.fileQuestion;
  if (range.label !== undefined && range.label !== '')
    return summary.symbolQuestion.replaceAll('{name}', () => range.label as string);
  const code = doc.lf.slice(doc.toLf(range.start), doc.toLf(range.end));
  return `${summary.selectionQuestion}\n${fenced(dedent(code), doc.path)}`;
}

export interface FileSummary {
  /** Relative to the folder. */
  path: string;
  text: string;
  /** A note for the user. Stands after the text in a list. The model does not read it. */
  note?: string | undefined;
}

/**
 * Joins the notes on the summary of one file. Removes its path from them, because they stand beside it.
 * @param path as the notes contain it
 */
export function fileNotes(path: string, notes: readonly (string | undefined)[]): string {
  const own = `${path}: `;
  return notes
    .flatMap((note) => (note === undefined ? [] : [note.startsWith(own) ? note.slice(own.length) : note]))
    .join('; ');
}

/** The summary of a folder: a list of the summaries of its files, or a request that makes one text from them. */
export type FolderSummary = { kind: 'text'; text: string } | { kind: 'request'; request: PreparedRequest };

export function summarizeFolder(
  layout: Layout,
  path: string,
  files: readonly FileSummary[],
  sampling?: SamplingParams,
): FolderSummary {
  const { summary } = summarizer(layout);
  const listOf = (withNotes: boolean) =>
    files
      .map(
        ({ path: of, text, note }) => `- ${of}: ${oneLine(text)}${withNotes && note !== undefined ? ` (${note})` : ''}`,
      )
      .join('\n');
  if (files.length === 0) return { kind: 'text', text: `${path} has no files that can be summarized.` };
  if (summary.folder === 'list') return { kind: 'text', text: listOf(true) };
  const messages = [
    { role: 'user' as const, content: `${summary.folderQuestion}\n\nFolder ${path}:\n${listOf(false)}` },
  ];
  const request = prepareAnswer(
    layout,
    { docs: [], messages, enableThinking: false },
    { maxTokens: summary.maxTokens, temperature: 0 },
    sampling,
  );
  const notes = files.flatMap(({ path: of, note }) => (note === undefined ? [] : [`${of}: ${note}`]));
  return { kind: 'request', request: { ...request, notes: [...notes, ...request.notes] } };
}

function summarizer(layout: Layout): Layout['text']['manifest'] {
  const { manifest } = layout.text;
  if (!manifest.can.summarize)
    throw new RequestError(
      'badRequest',
      t('{0} cannot summarize: {1}', manifest.name, layout.text.faults.chat ?? t('it has no chat template')),
    );
  return manifest;
}

/** The code without the common indentation of its lines. */
function dedent(code: string): string {
  const lines = code.split('\n');
  const first = lines[0] === undefined || !/^\s/.test(lines[0]) ? 1 : 0;
  const indents = lines
    .slice(first)
    .filter((line) => line.trim() !== '')
    .map((line) => line.length - line.trimStart().length);
  const shared = indents.length === 0 ? 0 : Math.min(...indents);
  return lines
    .map((line, i) => (i < first ? line : line.slice(Math.min(shared, line.length - line.trimStart().length))))
    .join('\n');
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line === '' ? 'no summary' : line;
}
