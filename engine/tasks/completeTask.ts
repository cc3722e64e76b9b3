/**
 * Prepares a completion: prompt, sampling, copy sources, and how the generated text is shown at the cursor. Runs
 * nothing.
 */
import { t } from '@vscode/l10n';
import { RequestError } from '../protocol/errors.ts';
import type { SamplingParams, Snippet } from '../protocol/tasks.ts';
import { type CompletionPrompt, completionPrompt } from '../text/prompt/completionPrompt.ts';
import { CopyPrior } from '../text/copy/copyPrior.ts';
import { Opening } from '../text/tokenizer/healing.ts';
import type { Layout } from '../text/prompt/layout.ts';
import type { KnownFolders } from '../text/syntax/importedModules.ts';
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import type { PlaceSyntax, Syntax } from '../text/syntax/syntax.ts';
import { grammarFor } from '../text/syntax/syntaxTrees.ts';
import { beginsTag } from '../text/syntax/tags.ts';
import { casesOf } from './completionLines.ts';
import { type CursorContext, shapeCompletion } from './completionText.ts';
import { fits } from './fitting.ts';
import { prefillRanges, type PreparedRequest, reservedForAnswer, samplingFor } from './preparedRequest.ts';

/** Most lines above the cursor that the prompt shows. */
const MAX_TAIL_LINES = 32;

export interface CompleteOptions {
  /** In the host's text. */
  offset: number;
  multiline?: boolean | undefined;
  snippets?: readonly Snippet[] | undefined;
  /** Other files that the completion may copy from, the likeliest first. */
  copySources?: readonly SourceDocument[] | undefined;
  /** Packages that the project has. If left out, they are not known. */
  packages?: readonly string[] | undefined;
  /** What folders of the project hold. */
  folders?: KnownFolders | undefined;
  /** Whether low-confidence text is shown. `line`: only its first line. */
  showLowConfidence?: boolean | 'line' | undefined;
}

/**
 * `syntax` must be prepared for the document (see Syntax.prepare).
 * @throws RequestError `badRequest` for an offset outside the text, or a model that cannot complete
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
        layout.text.faults.complete ?? layout.text.fimFault ?? t('it has no fill-in-the-middle tokens'),
      ),
    );
  requireOffset(doc, options.offset);
  const offset = doc.toLf(options.offset);
  const place = syntax?.at(doc, offset);
  const known = place && 'scan' in place ? place : undefined;
  const context = cursorContext(doc, offset, known, options.multiline);
  // A model that copies by itself knows what it copies.
  const copies = manifest.completion.copy.share > 0;
  if (copies)
    context.fits = remembered(
      fits({
        doc,
        offset,
        place: known,
        others: options.copySources ?? [],
        packages: options.packages,
        folders: options.folders,
        isAsked: Boolean(options.showLowConfidence),
      }),
    );
  const maxTokens = context.multiline ? manifest.completion.multilineMaxTokens : manifest.completion.maxTokens;
  const prompt = completionPrompt(layout, doc, offset, {
    answerTokens: reservedForAnswer(sampling?.maxTokens ?? maxTokens, layout.contextTokens),
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
    // After a block the tail is short, and the prefill lane would first have to copy the many rows of the block.
    prefill: prefillRanges(
      prompt.numBlockTokens,
      prompt.numBlockTokens > 0 ? [] : [[0, prompt.promptIds.length]],
      layout.fewestPrefill,
    ),
    docId: doc.docId,
    sampling: samplingFor(asked, { maxTokens, temperature: 0 }, prompt.promptIds.length, layout.contextTokens),
    stopTokenIds: layout.text.completionStopIds,
    ...(copies ? { prior: priorOf(layout, doc, offset, prompt, options.copySources ?? []) } : {}),
    draftSources: () => elsewhere(layout, doc, offset, prompt.numBlockTokens > 0),
    ...(confidence ? { confidence } : {}),
    // Such a model would invent what an empty file is about.
    ...(copies && doc.lf.trim() === '' ? { known: { text: '', note: t('the file is empty'), source: 'stock' } } : {}),
    shape: (rawText, finished) => shapeCompletion(context, rawText, finished),
    notes: place && 'note' in place && place.note !== undefined ? [...prompt.notes, place.note] : prompt.notes,
  };
}

/**
 * Token ids that drafts may copy: the text of the file that the prompt does not show, and passages that recent edits
 * removed. Without the text around the cursor, because what follows there is after the cursor.
 */
function elsewhere(
  layout: Layout,
  doc: SourceDocument,
  offset: number,
  showsBlock: boolean,
): readonly (readonly number[])[] {
  const { before, behind } = layout.knownAround(
    doc,
    doc.lineStart(Math.max(0, doc.lineAt(offset) - MAX_TAIL_LINES)),
    offset,
  );
  const removed = layout.removedIds(doc);
  // The last source is the likeliest, so the text of the file comes last.
  return showsBlock ? [...removed, behind] : [...removed, before, behind];
}

/**
 * The copy prior: from the text before and after the tail, and from other files. Without passages that edits removed,
 * because the shown text must depend on the current texts alone.
 */
function priorOf(
  layout: Layout,
  doc: SourceDocument,
  offset: number,
  { prefixIds, startOffset }: CompletionPrompt,
  copySources: readonly SourceDocument[],
): () => CopyPrior {
  // Takes the current texts, because they may change before the answer begins.
  const { before, behind } = layout.around(doc, startOffset, offset);
  const { tokenizer, manifest } = layout.text;
  const { copy } = manifest.completion;
  const others = copy.others > 0 ? copySources.map((other) => layout.beginning(other)).reverse() : [];
  return () => new CopyPrior(copy, { others, current: [before, prefixIds], behind }, (id) => tokenizer.decode([id]));
}

/** The document and the offset of a task. With `inserted`, a copy that contains this text, and the offset after it. */
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

/** Whether the completion may have more lines, and up to where. Uses the syntax at the cursor, or else its line. */
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
    const inTag = beginsTag(doc, offset, grammarFor(doc), undefined);
    const opens = /[{([:]$|=>$/.test(before.trimEnd());
    return {
      ...around,
      inTag,
      multiline: wanted ?? (after.trim() === '' && (blank || opens)),
      paragraph: false,
      ...(opens ? { openIndent: before.length - before.trimStart().length } : {}),
    };
  }
  const { inText, inTag, openIndent, words, statementStart } = place;
  const multiline = wanted ?? (after.trim() === '' && !inText && (blank ? statementStart : openIndent !== undefined));
  return {
    ...around,
    multiline,
    inText,
    inTag,
    paragraph: blank && openIndent === undefined,
    words,
    scan: remembered(place.scan),
    parses: remembered(place.parses),
    ...(place.continues ? { continues: remembered(place.continues) } : {}),
    ...(place.excess ? { excess: place.excess } : {}),
    ...(openIndent === undefined ? {} : { openIndent }),
  };
}

/** Keeps the results of `ask`, because it is called for each line again with every token. */
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
