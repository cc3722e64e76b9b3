/** A completion task: its prompt, its sampling, and how what the model writes is shown at the cursor. Pure. */
import { t } from '@vscode/l10n';
import { RequestError } from '../protocol/errors.ts';
import type { SamplingParams, Snippet } from '../protocol/tasks.ts';
import { type CompletionPrompt, completionPrompt } from '../text/prompt/completionPrompt.ts';
import { CopyPrior } from '../text/copy/copyPrior.ts';
import { Opening } from '../text/tokenizer/healing.ts';
import type { Layout } from '../text/prompt/layout.ts';
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import type { PlaceSyntax, Syntax } from '../text/syntax/syntax.ts';
import { casesOf } from './completionLines.ts';
import { type CursorContext, shapeCompletion } from './completionText.ts';
import { prefillRanges, type PreparedRequest, answerRoom, samplingFor } from './preparedRequest.ts';

/** Lines above the cursor that the prompt shows at most. */
const TAIL_LINES = 32;

export interface CompleteOptions {
  /** Of the host's text. */
  offset: number;
  multiline?: boolean | undefined;
  snippets?: readonly Snippet[] | undefined;
  /** Other files that it may copy from, the likeliest first. */
  copySources?: readonly SourceDocument[] | undefined;
  /** Shows it, too, where the model is not sure; `line`: the first line of it. */
  showLowConfidence?: boolean | 'line' | undefined;
}

/**
 * `syntax` must be prepared for the document. Throws `badRequest` for an offset outside the text or a model that cannot
 * complete.
 */
export function prepareComplete(
  layout: Layout,
  doc: SourceDocument,
  options: CompleteOptions,
  sampling?: SamplingParams,
  syntax?: Syntax,
): PreparedRequest {
  const { manifest } = layout.text;
  if (!manifest.can.complete)
    throw new RequestError(
      'badRequest',
      t(
        '{0} cannot complete code: {1}',
        manifest.name,
        layout.text.faults.complete ?? t('it has no fill-in-the-middle tokens'),
      ),
    );
  requireOffset(doc, options.offset);
  const offset = doc.toLf(options.offset);
  const place = syntax?.at(doc, offset);
  const context = cursorContext(doc, offset, place && 'scan' in place ? place : undefined, options.multiline);
  const maxTokens = context.multiline ? manifest.completion.multilineMaxTokens : manifest.completion.maxTokens;
  const prompt = completionPrompt(layout, doc, offset, {
    answerTokens: answerRoom(sampling?.maxTokens ?? maxTokens, layout.contextTokens),
    snippets: options.snippets,
  });
  const limits =
    options.showLowConfidence === 'line'
      ? { ...manifest.completion.confidence, line: 0, words: 0 }
      : manifest.completion.confidence;
  const confidence =
    options.showLowConfidence === true || Object.values(limits).every((least) => least === 0) ? null : limits;
  const asked = confidence ? { ...sampling, logprobs: true } : sampling;
  const opening = prompt.opening === '' ? null : new Opening(layout.text.tokenizer, prompt.opening);
  return {
    promptIds: prompt.promptIds,
    blockTokens: prompt.numBlockTokens,
    ...(opening ? { opening } : {}),
    // Behind a block there is little new at a time, over many rows that the prefill lane would have to be given first.
    prefill: prefillRanges(
      prompt.numBlockTokens,
      prompt.numBlockTokens > 0 ? [] : [[0, prompt.promptIds.length]],
      layout.fewestPrefill,
    ),
    docId: doc.docId,
    sampling: samplingFor(asked, { maxTokens, temperature: 0 }, prompt.promptIds.length, layout.contextTokens),
    stopTokenIds: layout.text.completionStopIds,
    ...(manifest.completion.copy.share > 0
      ? { prior: priorOf(layout, doc, offset, prompt, options.copySources ?? []) }
      : {}),
    draftSources: () => elsewhere(layout, doc, offset, prompt.numBlockTokens > 0),
    ...(confidence ? { confidence } : {}),
    shape: (rawText, finished) => shapeCompletion(context, rawText, finished),
    notes: place && 'note' in place && place.note !== undefined ? [...prompt.notes, place.note] : prompt.notes,
  };
}

/**
 * The file's text that the prompt does not show, lines above the cursor before those below it, and what edits have
 * taken out of the file
 * lately. The cursor's own place stays out: what followed there is behind the cursor.
 */
function elsewhere(
  layout: Layout,
  doc: SourceDocument,
  offset: number,
  showsBlock: boolean,
): readonly (readonly number[])[] {
  const { before, behind } = layout.knownAround(
    doc,
    doc.lineStart(Math.max(0, doc.lineAt(offset) - TAIL_LINES)),
    offset,
  );
  const removed = layout.removedIds(doc);
  // What is in the file counts for more.
  return showsBlock ? [...removed, behind] : [...removed, before, behind];
}

/**
 * What stands around the tail, and in other files; the cursor's own place stays out, as above. Not what edits have
 * taken out: what is shown
 * depends on the texts alone.
 */
function priorOf(
  layout: Layout,
  doc: SourceDocument,
  offset: number,
  { prefixIds, startOffset }: CompletionPrompt,
  copySources: readonly SourceDocument[],
): () => CopyPrior {
  // The texts as they are now: they may be others once the answer begins.
  const { before, behind } = layout.around(doc, startOffset, offset);
  const { tokenizer, manifest } = layout.text;
  const { copy } = manifest.completion;
  const others = copy.others > 0 ? copySources.map((other) => layout.beginning(other)).reverse() : [];
  return () => new CopyPrior(copy, { others, current: [before, prefixIds], behind }, (id) => tokenizer.decode([id]));
}

/**
 * The document and the offset that a task is about: those named, or with the task's `inserted` in the text and the
 * cursor behind it.
 */
export function completedDocument(
  doc: SourceDocument,
  { offset, inserted = '' }: { offset: number; inserted?: string },
): { document: SourceDocument; offset: number } {
  requireOffset(doc, offset);
  if (inserted === '') return { document: doc, offset };
  const document = doc.withInserted(offset, inserted);
  return { document, offset: offset + document.text.length - doc.text.length };
}

function requireOffset(doc: SourceDocument, offset: number): void {
  if (!(offset >= 0 && offset <= doc.text.length))
    throw new RequestError(
      'badRequest',
      t('offset {0} is outside {1}, which has {2} characters', offset, doc.path, doc.text.length),
    );
}

/** Whether the text may go on below the line, and up to where, from the syntax at the cursor or else from its line. */
function cursorContext(
  doc: SourceDocument,
  offset: number,
  place: PlaceSyntax | undefined,
  wanted: boolean | undefined,
): CursorContext {
  const line = doc.lineAt(offset);
  const lineEndAt = doc.lf.indexOf('\n', offset);
  const before = doc.lf.slice(doc.lineStart(line), offset);
  const after = doc.lf.slice(offset, lineEndAt < 0 ? undefined : lineEndAt);
  const blank = before.trim() === '';
  let nextLine = '';
  for (let i = line + 1; nextLine === '' && i < Math.min(doc.numLines, line + 20); i++)
    nextLine = doc.lf.slice(doc.lineStart(i), doc.lineStart(i + 1)).trimEnd();
  const above = doc.lf.slice(0, offset).trimEnd();
  const cases = casesOf(above.slice(above.lastIndexOf('\n') + 1), place?.words ?? false);
  const around = { before, after, nextLine, lineEnd: doc.lineEnd, cases };
  if (!place) {
    const opens = /[{([:]$|=>$/.test(before.trimEnd());
    return {
      ...around,
      multiline: wanted ?? (after.trim() === '' && (blank || opens)),
      paragraph: false,
      ...(opens ? { openIndent: before.length - before.trimStart().length } : {}),
    };
  }
  const { inText, openIndent, words, statementStart } = place;
  const multiline = wanted ?? (after.trim() === '' && !inText && (blank ? statementStart : openIndent !== undefined));
  return {
    ...around,
    multiline,
    paragraph: blank && openIndent === undefined,
    words,
    scan: remembered(place.scan),
    ...(openIndent === undefined ? {} : { openIndent }),
  };
}

/** Each line is asked for again with every token. */
function remembered<T>(ask: (written: string) => T): (written: string) => T {
  const answers = new Map<string, T>();
  return (written) => {
    let answer = answers.get(written);
    if (answer === undefined) {
      answer = ask(written);
      answers.set(written, answer);
    }
    return answer;
  };
}
