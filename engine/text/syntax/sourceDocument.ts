/**
 * A document for prompts: the text of the host with LF line ends, its lines, and the mapping of offsets. Prompts never
 * contain carriage returns. Does not read files.
 */
export class SourceDocument {
  readonly docId: string;
  /** Last two parts of the path. So prompts do not depend on the workspace folder or on the command line. */
  readonly path: string;
  /** With `/` between its parts. Imports are relative to it. */
  readonly fullPath: string;
  version: number;
  /** The language id of the editor, if the path does not give the language. */
  readonly language: string | undefined;
  /** Passages that recent edits removed, as LF text, the last one last. Every change sets a new array. */
  removed: readonly string[] = [];
  #text: string;
  #lf: string | undefined;
  #lineStarts: number[] | undefined;
  #ahead: SourceDocument | undefined;

  constructor(docId: string, path: string, text: string, version = 1, language?: string) {
    this.docId = docId;
    this.path = shortPath(path);
    this.fullPath = path.replaceAll('\\', '/');
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

  /** The line end of the first line, which new lines should have. */
  get lineEnd(): '\n' | '\r\n' {
    const first = this.#text.indexOf('\n');
    return first > 0 && this.#text[first - 1] === '\r' ? '\r\n' : '\n';
  }

  /** A copy of this document with a text inserted at an offset, with the same line ends. Valid until the next call. */
  withInserted(offset: number, inserted: string): SourceDocument {
    // The same object for all calls, so that encodings of its text are updated instead of made again.
    this.#ahead ??= new SourceDocument(this.docId, this.fullPath, '', this.version, this.language);
    this.#ahead.version = this.version;
    this.#ahead.removed = this.removed;
    const text = this.#text.includes('\n') ? inserted.replace(/\r?\n/g, this.lineEnd) : inserted;
    this.#ahead.text = this.#text.slice(0, offset) + text + this.#text.slice(offset);
    return this.#ahead;
  }

  /** Maps an offset of the host to `lf`. An offset inside a CRLF is mapped to the place before it. */
  toLf(offset: number): number {
    if (this.lf.length === this.#text.length) return offset;
    let removed = 0;
    for (let at = this.#text.indexOf('\r\n'); at >= 0 && at < offset; at = this.#text.indexOf('\r\n', at + 2))
      removed++;
    return offset - removed;
  }

  /** Offset in `lf` at which each line starts. */
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

  /** Number of lines for messages. Does not count the empty line after a final line break. */
  get numWrittenLines(): number {
    return this.lf === '' || this.lf.endsWith('\n') ? this.numLines - 1 : this.numLines;
  }

  /** Offset in `lf` at which a line starts. The end of the text for a line after the last one. */
  lineStart(line: number): number {
    return this.lineStarts[Math.max(0, line)] ?? this.lf.length;
  }

  /** Index of the line that contains an offset of `lf`. */
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
