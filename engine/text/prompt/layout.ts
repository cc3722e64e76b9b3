/**
 * Makes the file block: header and text of the open file, with the same tokens for completion, chat and summary, so
 * that their KV rows are shared. Decides which part of a large file it shows. Does not write the rest of a prompt.
 */
import { t } from '@vscode/l10n';
import { MAX_COPIED } from '../../protocol/tasks.ts';
import { IncrementalEncoding } from '../tokenizer/incrementalEncoding.ts';
import type { ModelText } from '../format/modelText.ts';
import { fileSeparator } from '../format/modelText.ts';
import type { SourceDocument } from '../syntax/sourceDocument.ts';

export interface FileBlock {
  /** The header, then the text. */
  tokenIds: number[];
  /** How many of the ids are the header. */
  numHeaderTokens: number;
  /** The lines that are shown, from 0. The end is exclusive. */
  startLine: number;
  endLine: number;
  /** Says for the user what is left out. Empty if the block has the whole file. */
  omitted: string;
  /** How many of the tokens end at or before an offset of the LF text. Valid until the document changes. */
  numTokensBefore(offset: number): number;
}

/** A block starts and ends at a multiple of so many lines. The completion tail starts on the same grid. */
export const SECTION_LINES = 16;
/** Most characters that are encoded per token of the limit. Code has 3 to 5 characters per token. */
const CHARACTERS_PER_TOKEN = 6;
/** Stands for the text of the file while a chat template is rendered. */
const FILE_MARK = '\uf8ff';
/** Characters before and after the cursor that a completion may copy from. */
const MAX_AROUND = 49_152;
/** That text begins and ends on a grid, so that it is rarely encoded as a whole. */
const AROUND_GRID = 16_384;
/** A line with more characters is generated code. */
const MAX_LINE = 4096;
/** Sections whose token counts are kept. */
const MAX_COUNTED_SECTIONS = 4096;

/**
 * A file that does not fit is shown from K to 2K lines before the cursor on, starting on a grid of K lines. K is the
 * largest power of two for which 2K lines fit. So typing and small moves of the cursor do not change the start, which
 * would make all KV rows of the block useless. Results depend on the text, the cursor line, the manifest and the model,
 * never on the cache. What is kept between calls only saves time.
 */
export class Layout {
  readonly text: ModelText;
  readonly contextTokens: number;
  /** Parameters of the model, or 0 if unknown. Decides whether a completion has a block. */
  readonly numParameters: number;
  /** Shortest text, in tokens, for the prefill lane. Undefined: the default (see MIN_PREFILL). */
  readonly fewestPrefill: number | undefined;
  readonly #whole = new WeakMap<SourceDocument, IncrementalEncoding>();
  readonly #part = new WeakMap<SourceDocument, IncrementalEncoding>();
  readonly #before = new WeakMap<SourceDocument, IncrementalEncoding>();
  readonly #behind = new WeakMap<SourceDocument, IncrementalEncoding>();
  readonly #beginning = new WeakMap<SourceDocument, IncrementalEncoding>();
  readonly #removed = new WeakMap<SourceDocument['removed'], readonly (readonly number[])[]>();
  readonly #sectionTokens = new Map<string, number>();
  readonly #headers = new Map<string, number[]>();

  constructor(text: ModelText, options: { contextTokens: number; numParameters: number; fewestPrefill?: number }) {
    this.text = text;
    this.contextTokens = options.contextTokens;
    this.numParameters = options.numParameters;
    this.fewestPrefill = options.fewestPrefill;
  }

  /** Tokens that the block leaves for the tail and the answer. */
  get reservedTokens(): number {
    return Math.min(4096, Math.floor(this.contextTokens * 0.35));
  }

  /**
   * The file block. `cursorOffset` in the LF text matters for large files only. `reserveTokens` above `reservedTokens`
   * cut the block at its end and never move its start. `fill`: it may take all but `reserveTokens`. From the beginning
   * of a file, it then starts with the tokens of the usual block.
   */
  fileBlock(
    doc: SourceDocument,
    options: { cursorOffset?: number; reserveTokens?: number; fill?: boolean } = {},
  ): FileBlock {
    const header = this.header(doc.path);
    const limitOf = (reserved: number): number => Math.max(0, this.contextTokens - reserved - header.length);
    const { reserveTokens = 0 } = options;
    const usual = limitOf(options.fill ? reserveTokens : this.reservedTokens);
    const limit = Math.min(usual, limitOf(reserveTokens));
    const { encoding, startLine } = this.#shown(doc, usual, options.cursorOffset ?? 0);
    const start = doc.lineStart(startLine);

    let endLine = doc.numLines;
    let numTokens = encoding.numTokens;
    if (start + encoding.text.length < doc.lf.length || numTokens > limit) {
      endLine = Math.floor(doc.lineAt(start + encoding.text.length) / SECTION_LINES) * SECTION_LINES;
      for (; endLine > startLine; endLine -= SECTION_LINES) {
        numTokens = encoding.numTokensBefore(doc.lineStart(endLine) - start);
        if (numTokens <= limit) break;
      }
      if (endLine <= startLine) {
        endLine = startLine;
        numTokens = 0;
      }
    }
    return {
      tokenIds: [...header, ...encoding.ids.slice(0, numTokens)],
      numHeaderTokens: header.length,
      startLine,
      endLine,
      omitted: describeOmitted(startLine, endLine, doc.numWrittenLines),
      numTokensBefore: (offset) =>
        offset <= start ? 0 : Math.min(numTokens, encoding.numTokensBefore(offset - start)) + header.length,
    };
  }

  /**
   * Tokens of the text before the line of `start` and after the line of `end`. Encodes nothing: uses the last encoding
   * of the file, which may be some edits old. So the result is for drafts only.
   */
  knownAround(doc: SourceDocument, start: number, end: number): { before: number[]; behind: number[] } {
    const known = this.#whole.get(doc);
    if (!known) return { before: [], behind: [] };
    const endLine = doc.lineStart(doc.lineAt(end) + 1);
    const numBefore = known.numTokensBefore(Math.min(known.text.length, doc.lineStart(doc.lineAt(start))));
    const numNotBehind = known.numTokensBefore(Math.max(0, known.text.length - (doc.lf.length - endLine)));
    return { before: known.ids.slice(0, numBefore), behind: known.ids.slice(numNotBehind) };
  }

  /**
   * Tokens of the text before `start` and after the line of `end`, at most MAX_AROUND characters on each side. Encodes
   * only what has changed since the last call.
   */
  around(doc: SourceDocument, start: number, end: number): { before: readonly number[]; behind: readonly number[] } {
    const { lf } = doc;
    const from = Math.max(0, Math.floor((start - MAX_AROUND) / AROUND_GRID) * AROUND_GRID);
    const behind = doc.lineStart(doc.lineAt(end) + 1);
    const to = Math.ceil((behind + MAX_AROUND) / AROUND_GRID) * AROUND_GRID;
    return {
      before: this.#toCopy(this.#before, doc, lf.slice(from, start)),
      behind: this.#toCopy(this.#behind, doc, lf.slice(behind, to)),
    };
  }

  /** Tokens of the first MAX_COPIED characters. Encodes only what has changed since the last call. */
  beginning(doc: SourceDocument): readonly number[] {
    return this.#toCopy(this.#beginning, doc, doc.lf.slice(0, MAX_COPIED));
  }

  /** Tokens of each passage that recent edits removed. Encodes a list of passages once. */
  removedIds({ removed }: SourceDocument): readonly (readonly number[])[] {
    return entry(this.#removed, removed, () => removed.map((text) => this.text.tokenizer.encode(text)));
  }

  /** Ids before the text of the file. */
  header(path: string): number[] {
    let header = this.#headers.get(path);
    if (header !== undefined) return header;
    const { tokenizer, manifest, chatTemplate } = this.text;
    const separator = fileSeparator(tokenizer);
    if (manifest.fileBlock === 'fileSeparator' && separator !== undefined)
      header = [separator, ...tokenizer.encode(`${path}\n`, 'token')];
    else
      header =
        chatTemplate?.encodeAround(this.messagesWithFile(path, [{ role: 'user', content: 'x' }]), FILE_MARK).before ??
        [];
    this.#headers.set(path, header);
    return header;
  }

  /**
   * The messages with a mark for the file in the first turn: the system turn if the template takes one, else the
   * user's.
   */
  messagesWithFile<M extends { role: string; content: string }>(
    path: string,
    messages: readonly M[],
  ): { role: string; content: string }[] {
    // The file comes before instructions, so that chat and summary share its rows.
    const file = `The open file is ${path}:\n\`\`\`\n${FILE_MARK}\n\`\`\``;
    const [first, ...rest] = messages;
    if (this.text.chatTemplate?.takesSystem) {
      if (first?.role === 'system') return [{ role: 'system', content: `${file}\n\n${first.content}` }, ...rest];
      return [
        { role: 'system', content: `${file}\n\nYou are a helpful coding assistant. Answer briefly.` },
        ...messages,
      ];
    }
    if (first === undefined) return [];
    return [{ role: first.role, content: `${file}\n\n${first.content}` }, ...rest];
  }

  get fileMark(): string {
    return FILE_MARK;
  }

  #toCopy(known: WeakMap<SourceDocument, IncrementalEncoding>, doc: SourceDocument, text: string): readonly number[] {
    const encoding = entry(known, doc, () => new IncrementalEncoding(this.text.tokenizer));
    // A text with a very long line is encoded as a whole at each change, and generated text is not worth copying.
    // Unchanged texts are skipped first, because each request brings a hundred files, most of them unchanged.
    if (text !== encoding.text) encoding.update(hasEndlessLine(text) ? '' : text);
    return encoding.ids;
  }

  /** The encoded text that a block may show, and its first line. */
  #shown(
    doc: SourceDocument,
    limit: number,
    cursorOffset: number,
  ): { encoding: IncrementalEncoding; startLine: number } {
    if (doc.lf.length <= limit * CHARACTERS_PER_TOKEN) {
      const whole = entry(this.#whole, doc, () => new IncrementalEncoding(this.text.tokenizer));
      whole.update(doc.lf);
      if (whole.numTokens <= limit) return { encoding: whole, startLine: 0 };
    }
    const startLine = this.#startLine(doc, limit, doc.lineAt(cursorOffset));
    const start = doc.lineStart(startLine);
    const end = Math.min(doc.lf.length, start + limit * CHARACTERS_PER_TOKEN);
    const encoding = entry(this.#part, doc, () => new IncrementalEncoding(this.text.tokenizer));
    encoding.update(doc.lf.slice(start, end === doc.lf.length ? end : doc.lineStart(doc.lineAt(end))));
    return { encoding, startLine };
  }

  #startLine(doc: SourceDocument, limit: number, cursorLine: number): number {
    let startLine = Math.floor(cursorLine / SECTION_LINES) * SECTION_LINES;
    for (let grid = SECTION_LINES; ; grid *= 2) {
      const start = Math.max(0, Math.floor(cursorLine / grid) * grid - grid);
      let tokens = 0;
      for (let line = start; line < start + 2 * grid && line < doc.numLines && tokens <= limit; line += SECTION_LINES)
        tokens += this.#countSection(doc, line, limit);
      if (tokens > limit * 0.95) return startLine;
      startLine = start;
      if (start === 0) return 0;
    }
  }

  /** Number of tokens of the section that starts at a line, encoded by itself. */
  #countSection(doc: SourceDocument, line: number, limit: number): number {
    const start = doc.lineStart(line);
    const end = doc.lineStart(line + SECTION_LINES);
    if (end - start > limit * CHARACTERS_PER_TOKEN) return Number.POSITIVE_INFINITY;
    const text = doc.lf.slice(start, end);
    let count = this.#sectionTokens.get(text);
    if (count === undefined) {
      count = this.text.tokenizer.encode(text).length;
      if (this.#sectionTokens.size >= MAX_COUNTED_SECTIONS) this.#sectionTokens.clear();
      this.#sectionTokens.set(text, count);
    }
    return count;
  }
}

/** Whether a line is longer than MAX_LINE. A regular expression would take quadratic time. */
function hasEndlessLine(text: string): boolean {
  for (let start = 0; start + MAX_LINE <= text.length; ) {
    const end = text.indexOf('\n', start);
    if ((end < 0 ? text.length : end) - start >= MAX_LINE) return true;
    if (end < 0) return false;
    start = end + 1;
  }
  return false;
}

function entry<K extends object, V>(map: WeakMap<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

/** "lines 1-320, 700-900 of 900 left out". Empty if nothing is left out. */
function describeOmitted(startLine: number, endLine: number, numLines: number): string {
  if (endLine <= startLine) return numLines === 0 ? '' : t('all {0} lines left out: too long for this model', numLines);
  const ranges = [];
  if (startLine > 0) ranges.push(`1-${startLine}`);
  if (endLine < numLines) ranges.push(`${endLine + 1}-${numLines}`);
  return ranges.length === 0 ? '' : t('lines {0} of {1} left out', ranges.join(', '), numLines);
}
