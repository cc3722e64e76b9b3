/**
 * Builds the prompt of a completion: the file block before the tail, whose KV rows are shared with chat and summary,
 * and a small fill-in-the-middle tail around the cursor, which starts on a grid of 16 lines. Does not shape the answer.
 */
import { t } from '@vscode/l10n';
import { healed } from '../tokenizer/healing.ts';
import { type FileBlock, type Layout, SECTION_LINES } from './layout.ts';
import { fileSeparator } from '../format/modelText.ts';
import { type SourceDocument, shortPath } from '../syntax/sourceDocument.ts';
import type { Snippet } from '../../protocol/tasks.ts';

export interface CompletionPrompt {
  promptIds: number[];
  /** How many of the ids are the file block. */
  numBlockTokens: number;
  /** The end of the text before the cursor, which the answer must begin with (see healing.ts). May be empty. */
  opening: string;
  /** The text before the cursor in the tail. */
  prefixIds: readonly number[];
  /** Where the tail begins in the LF text. */
  startOffset: number;
  notes: string[];
}

/**
 * Most multiply-adds for the block of a completion with nothing cached. Fixed, so that the prompt does not depend on
 * the machine or the cache. Allows the largest block of the built-in model (0.65 of 4,096 tokens) and 140 tokens of a
 * 0.5B model. With nothing cached, 2,284 tokens with a block of 1,932 took 0.71 to 0.78 s on two cores of an AMD EPYC.
 */
const BLOCK_BUDGET = 7e10;
/** The same for snippets, which many completions share: about 400 tokens of a 0.5B model. */
const SNIPPET_BUDGET = 2e11;
const MIN_SNIPPET_LINES = 3;
const MAX_SUFFIX_LINES = 15;
const MAX_SUFFIX_TOKENS = 64;
/** In a line that is too long for the tail, the prefix starts on a grid of this many characters. */
const LONG_LINE_GRID = 256;
const CHARACTERS_PER_TOKEN = 8;

/** The prompt for an offset of the LF text. The model must have a FIM family. */
export function completionPrompt(
  layout: Layout,
  doc: SourceDocument,
  offset: number,
  options: { answerTokens: number; snippets?: readonly Snippet[] },
): CompletionPrompt {
  const { text, contextTokens } = layout;
  const { fim, tokenizer, manifest } = text;
  if (fim === undefined) throw new Error('the model has no fill-in-the-middle tokens');
  const notes: string[] = [];

  const suffixIds = fim.encodeSuffix(suffixText(layout, doc, offset));
  const { ids: prefixIds, startOffset, opening } = tailPrefix(layout, doc, offset);
  const separator = manifest.fileBlock === 'fileSeparator' ? fileSeparator(tokenizer) : undefined;
  let header =
    separator === undefined ? fim.fileHead(doc.path) : [separator, ...tokenizer.encode(`${doc.path}\n`, 'token')];
  if (manifest.completion.snippets && (options.snippets?.length ?? 0) > 0) {
    const snippets = fitSnippets(layout, options.snippets ?? [], notes);
    if (snippets.length > 0) header = fim.repositoryHead('', snippets, doc.path) ?? header;
  }

  const tail = fim.build(prefixIds, suffixIds, header);
  let blockIds: number[] = [];
  if (manifest.completion.layout === 'blockAndTail' && startOffset > 0) {
    const block = layout.fileBlock(doc, { cursorOffset: offset });
    const numTokens = Math.min(
      numStableTokens(doc, block, startOffset),
      contextTokens - options.answerTokens - tail.length,
    );
    if (numTokens > block.numHeaderTokens && layout.numParameters * numTokens <= BLOCK_BUDGET)
      blockIds = block.tokenIds.slice(0, numTokens);
    if (blockIds.length > 0 && block.startLine > 0)
      notes.push(t('{0}: lines 1-{1} left out', doc.path, block.startLine));
  }
  return { promptIds: [...blockIds, ...tail], numBlockTokens: blockIds.length, opening, prefixIds, startOffset, notes };
}

/**
 * Number of tokens of the block before the tail that no edit after the first 16 lines of the tail can change. If those
 * lines are blank, one token of line breaks may reach from before the tail to the cursor. Then the last word before the
 * tail is not counted either.
 */
function numStableTokens(doc: SourceDocument, block: FileBlock, tailStart: number): number {
  const line = doc.lineAt(tailStart);
  const section = doc.lf.slice(tailStart, doc.lineStart(line + SECTION_LINES));
  if (section.trim() !== '') return block.numTokensBefore(tailStart);
  const before = doc.lf.slice(doc.lineStart(block.startLine), tailStart).trimEnd();
  const word = /(?:[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]+)$/u.exec(before.slice(-200));
  return block.numTokensBefore(doc.lineStart(block.startLine) + before.length - (word?.[0].length ?? 0));
}

/** The text before the cursor: 16 to 31 whole lines and the current line, or less if lines are long. */
function tailPrefix(
  layout: Layout,
  doc: SourceDocument,
  offset: number,
): { ids: readonly number[]; startOffset: number; opening: string } {
  const { manifest, tokenizer } = layout.text;
  const from = (startOffset: number) => {
    return { ...healed(tokenizer, doc.lf.slice(startOffset, offset), manifest.completion.heal), startOffset };
  };
  const limit = Math.max(16, Math.min(1024, Math.floor(layout.contextTokens * 0.2)));
  const line = doc.lineAt(offset);
  let startOffset = doc.lineStart(Math.max(0, Math.floor(line / SECTION_LINES) * SECTION_LINES - SECTION_LINES));
  // A grid keeps the start in place while the user types. If the text is too long, a finer grid is tried.
  for (let grid = SECTION_LINES / 2; ; grid = Math.floor(grid / 2)) {
    if (offset - startOffset <= limit * CHARACTERS_PER_TOKEN) {
      const prefix = from(startOffset);
      if (prefix.ids.length <= limit) return prefix;
    }
    if (grid < 1) break;
    startOffset = doc.lineStart(Math.max(0, Math.floor(line / grid) * grid - (grid > 1 ? grid : 0)));
  }
  // The current line alone is too long. The prefix starts at its first grid point from which the rest fits.
  const lineStart = doc.lineStart(line);
  for (
    let at = Math.ceil(Math.max(0, offset - lineStart - limit * 4) / LONG_LINE_GRID) * LONG_LINE_GRID;
    ;
    at += LONG_LINE_GRID
  ) {
    const prefix = from(Math.min(offset, lineStart + at));
    if (prefix.ids.length <= limit) return prefix;
  }
}

/**
 * The text after the cursor: whole lines, at most 15 after the current one, at most 64 tokens. Does not change while
 * the user types.
 */
function suffixText(layout: Layout, doc: SourceDocument, offset: number): string {
  const limit = Math.max(4, Math.min(MAX_SUFFIX_TOKENS, Math.floor(layout.contextTokens / 16)));
  const end = doc.lineStart(doc.lineAt(offset) + MAX_SUFFIX_LINES + 1);
  const text = doc.lf.slice(offset, Math.min(end, offset + limit * CHARACTERS_PER_TOKEN * 2));
  const { ids, ends } = layout.text.tokenizer.encodeWithOffsets(text);
  const fits = ids.length <= limit ? text : text.slice(0, ends[limit - 1]);
  if (offset + fits.length === end) return fits;
  const lastBreak = fits.lastIndexOf('\n');
  return lastBreak < 0 ? fits : fits.slice(0, lastBreak + 1);
}

/**
 * The snippets that fit in an eighth of the context and in SNIPPET_BUDGET, with short paths. They stay in the order of
 * the host, so that their KV rows stay valid. A snippet that does not fit is cut at a line end.
 */
function fitSnippets(layout: Layout, snippets: readonly Snippet[], notes: string[]): Snippet[] {
  const { tokenizer } = layout.text;
  let left = Math.floor(Math.min(layout.contextTokens / 8, SNIPPET_BUDGET / Math.max(1, layout.numParameters)));
  const kept: Snippet[] = [];
  for (const snippet of snippets) {
    const path = shortPath(snippet.path);
    const lf = snippet.text.replaceAll('\r\n', '\n');
    // The 2 tokens are the separator and a line break.
    const limit = left - tokenizer.encode(`${path}\n`).length - 2;
    const { ids, ends } = tokenizer.encodeWithOffsets(lf.slice(0, Math.max(0, limit) * CHARACTERS_PER_TOKEN));
    const whole = ids.length <= limit && lf.length <= limit * CHARACTERS_PER_TOKEN;
    const text = whole ? lf : lf.slice(0, lf.lastIndexOf('\n', (ends[Math.min(limit, ids.length) - 1] ?? 0) - 1) + 1);
    const numLines = text.split('\n').length - 1;
    if (!whole && numLines < MIN_SNIPPET_LINES) notes.push(t('snippet of {0} left out', path));
    else {
      if (!whole) notes.push(t('snippet of {0}: all but its first {1} lines left out', path, numLines));
      kept.push({ path, text });
      left = limit - tokenizer.encode(text).length;
    }
  }
  return kept;
}
