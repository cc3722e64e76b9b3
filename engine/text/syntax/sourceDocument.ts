/**
 * One document as prompts read it: the text of the host with LF line ends, its lines, and the mapping of host offsets.
 * Prompts never contain the carriage returns of a CRLF file; results get the line ends of the host.
 */
export class SourceDocument {
  readonly docId: string;
  /** Last two parts of the path, so that editor and command line agree whatever the workspace root is. */
  readonly path: string;
  version: number;
  /** The editor's name of it, where the path does not tell. */
  readonly language: string | undefined;
  /**
   * What edits have taken out of the text lately, as LF text, the last one last (see Documents.edit). Another array
   * once it changes.
   */
  removed: readonly string[] = [];
  #text: string;
  #lf: string | undefined;
  #lineStarts: number[] | undefined;
  #ahead: SourceDocument | undefined;

  constructor(docId: string, path: string, text: string, version = 1, language?: string) {
    this.docId = docId;
    this.path = shortPath(path);
    this.version = version;
    this.language = language;
    this.#text = text;
  }

  /** The host's text. */
  get text(): string {
    return this.#text;
  }

  set text(text: string) {
    this.#text = text;
    this.#lf = undefined;
    this.#lineStarts = undefined;
  }

  /** The text with LF line ends. */
  get lf(): string {
    this.#lf ??= this.#text.includes('\r\n') ? this.#text.replaceAll('\r\n', '\n') : this.#text;
    return this.#lf;
  }

  /** What a line of this document ends with: that of its first line. */
  get lineEnd(): '\n' | '\r\n' {
    const first = this.#text.indexOf('\n');
    return first > 0 && this.#text[first - 1] === '\r' ? '\r\n' : '\n';
  }

  /**
   * What this document would be with a text put in at an offset, with this document's line ends. Changed by the next
   * call.
   */
  withInserted(offset: number, inserted: string): SourceDocument {
    // Always the same one, so that what is known of its text is brought up to date rather than made anew.
    this.#ahead ??= new SourceDocument(this.docId, this.path, '', this.version, this.language);
    this.#ahead.version = this.version;
    this.#ahead.removed = this.removed;
    const text = this.#text.includes('\n') ? inserted.replace(/\r?\n/g, this.lineEnd) : inserted;
    this.#ahead.text = this.#text.slice(0, offset) + text + this.#text.slice(offset);
    return this.#ahead;
  }

  /** The offset in `lf` of an offset of the host; one inside a CRLF counts as before it. */
  toLf(offset: number): number {
    if (this.lf.length === this.#text.length) return offset;
    let removed = 0;
    for (let at = this.#text.indexOf('\r\n'); at >= 0 && at < offset; at = this.#text.indexOf('\r\n', at + 2))
      removed++;
    return offset - removed;
  }

  /** Offset in `lf` of each line's start. */
  get lineStarts(): readonly number[] {
    if (this.#lineStarts === undefined) {
      this.#lineStarts = [0];
      for (let at = this.lf.indexOf('\n'); at >= 0; at = this.lf.indexOf('\n', at + 1)) this.#lineStarts.push(at + 1);
    }
    return this.#lineStarts;
  }

  get numLines(): number {
    return this.lineStarts.length;
  }

  /**
   * As they are told of: the empty one behind a final line break, which editors number, is nothing that could be read
   * or left out.
   */
  get numWrittenLines(): number {
    return this.lf === '' || this.lf.endsWith('\n') ? this.numLines - 1 : this.numLines;
  }

  /** Offset in `lf` of a line's start, or the text's end after the last line. */
  lineStart(line: number): number {
    return this.lineStarts[Math.max(0, line)] ?? this.lf.length;
  }

  /** Index of the line that holds an offset of `lf`. */
  lineAt(offset: number): number {
    let low = 0;
    let high = this.numLines - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.lineStarts[middle] as number) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** The last two parts of a path, with forward slashes. */
export function shortPath(path: string): string {
  return path
    .split(/[\\/]+/)
    .filter((part) => part !== '')
    .slice(-2)
    .join('/');
}
