/**
 * The command `kvasir demo`: completes, asks about and summarizes one file at the same time, and shows what the
 * requests share in the KV cache.
 */
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { WriteStream } from 'node:tty';
import { RequestError } from '../protocol/errors.ts';
import type { Done } from './cliClient.ts';
import { type CommandLine, text } from './options.ts';
import { bytes, count, doneLine, isOfModel, MODEL_NOTE, printJson, statsLine, table } from './output.ts';
import { withClient } from './session.ts';

const NAMES = ['completion', 'chat', 'summary'];
const QUESTION = 'What does this file do?';

/** A file of this project that fits the context of the built-in model. Its completion is right. */
function defaultFile(): string {
  const source = join(__dirname, '..', 'engine', 'text', 'syntax', 'sourceDocument.ts');
  if (!existsSync(source))
    throw new RequestError('badRequest', 'demo: the default file is not in this installation; name a file with --file');
  return source;
}

/**
 * How a line may begin: with a `return`, without whose value the file has no error, like a statement with several
 * words, like a statement, or with a word. Best first.
 */
const STARTS = [
  /^\s+return /,
  /^\s+(?:const |let |return |this\.|self\.|if )[\w.$ =(]*[ (.]/,
  /^\s+(?:const |let |return |if )/,
  /^\s*[\w$]+[\w$.]*[ (.]/,
];

/**
 * Chooses a cursor in a line of the second half of the file. The text before the cursor counts as typed. The rest of
 * the line is a good completion.
 */
export function pickCursor(source: string): { offset: number; rest: string } {
  const lines = source.split('\n');
  let offset = 0;
  const candidates = STARTS.map((): { offset: number; rest: string }[] => []);
  for (const [index, line] of lines.entries()) {
    for (const [i, start] of STARTS.entries()) {
      const typed = start.exec(line)?.[0];
      if (typed && index > lines.length / 2 && line.trimEnd().length - typed.length > 4)
        candidates[i]!.push({ offset: offset + typed.length, rest: line.slice(typed.length).trimEnd() });
    }
    offset += line.length + 1;
  }
  return candidates.flat()[0] ?? { offset: source.length, rest: '' };
}

export async function demo(line: CommandLine): Promise<number> {
  const file = text(line, 'file') ?? defaultFile();
  return withClient(line, async (client, model) => {
    const say = (words: string) => line.json || process.stdout.write(`${words}\n`);
    say(
      `${model.name}: ${count(model.parameters)} parameters, ${model.precision}, ` +
        `loaded in ${model.loadMs.toFixed(0)} ms${model.imported ? ' (imported)' : ''}`,
    );
    if (model.note.en) say(model.note.en);
    const { docId, text: source } = await client.openFile(file);
    const cursor = pickCursor(source);
    const typed = source.slice(0, cursor.offset);
    // The rest of the line is removed, as if it had not been written yet.
    client.send({
      type: 'documentChanged',
      docId,
      version: 2,
      edits: [{ start: cursor.offset, end: cursor.offset + cursor.rest.length, text: '' }],
    });
    const started = performance.now();
    await client.flush();
    const read = await client.stats();
    say(
      `\n${basename(file)}: its ${count(read.tokens.idleComputed)} tokens were computed once, ` +
        `in ${(performance.now() - started).toFixed(0)} ms. Now three requests at once:\n`,
    );
    const lineStart = typed.lastIndexOf('\n') + 1;
    say(
      `  line ${typed.split('\n').length}: ${typed.slice(lineStart).trim()}▮   (the file goes on: ${cursor.rest.trim()})`,
    );

    say(`  question: ${QUESTION}\n`);
    const lanes = new Columns(NAMES);
    const ask = async (lane: number, task: Parameters<typeof client.generate>[0]) => {
      const done = await client.generate(task, {
        id: NAMES[lane]!,
        ...(line.json ? { sampling: { logprobs: true } } : {}),
        onChunk: (chunk) =>
          line.json
            ? printJson({
                type: 'chunk',
                id: chunk.requestId,
                text: chunk.text,
                tokenIds: chunk.tokenIds,
                logprobs: chunk.logprobs,
              })
            : lanes.add(lane, chunk.text),
      });
      if (done.text === '' && !line.json) lanes.add(lane, nothing(done));
      return done;
    };
    const done = await Promise.all([
      ask(0, { kind: 'complete', docId, offset: cursor.offset }),
      ask(1, { kind: 'chat', messages: [{ role: 'user', content: QUESTION }], docIds: [docId] }),
      ask(2, { kind: 'summarize', docId }),
    ]);
    const stats = await client.stats();
    if (line.json) {
      for (const [i, d] of done.entries()) printJson(doneLine(NAMES[i]!, d));
      printJson(statsLine(stats));
      return 0;
    }
    lanes.end();
    say(
      `\n${table([['', 'prompt', 'reused', 'computed', 'first token', 'tok/s'], ...done.map((d, i) => row(NAMES[i]!, d))])}`,
    );
    say(
      `\nKV cache: pool ${bytes(stats.poolBytes)} (${count(stats.poolSlots.held)} tokens), ` +
        `store ${bytes(stats.storeBytes)}, ${stats.kvBytesPerToken} bytes per token in ${model.kv}`,
    );
    for (const [i, d] of done.entries())
      for (const note of [...(isOfModel(d) ? [MODEL_NOTE] : []), ...d.diagnostics]) say(`${NAMES[i]}: ${note}`);
    return 0;
  });
}

/** The text that is shown instead of an empty one. */
export function nothing({ diagnostics, suppressed }: Pick<Done, 'diagnostics' | 'suppressed'>): string {
  return suppressed
    ? '(nothing offered: the confidence of the model is too low here)'
    : `(nothing${diagnostics.length ? `: ${diagnostics.at(-1)}` : ''})`;
}

function row(name: string, { usage, timings }: Done): string[] {
  return [
    name,
    count(usage.promptTokens),
    count(usage.cachedTokens),
    count(usage.promptTokens - usage.cachedTokens),
    `${timings.ttftMs.toFixed(0)} ms`,
    timings.tpotMs > 0 ? (1000 / timings.tpotMs).toFixed(0) : '-',
  ];
}

const REDRAW_MS = 50;
const LINE_CHARS = 88;

/** Breaks text into lines of at most `width` characters, at spaces if possible. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const paragraph of text.split('\n')) {
    let rest = paragraph;
    while (rest.length > width) {
      const space = rest.lastIndexOf(' ', width);
      const cut = space > width / 3 ? space : width;
      lines.push(rest.slice(0, cut));
      rest = rest.slice(space > width / 3 ? cut + 1 : cut);
    }
    lines.push(rest);
  }
  return lines;
}

/** Prints several streams of text: in columns on a terminal, otherwise in labelled lines. */
class Columns {
  readonly #names: string[];
  readonly #texts: string[];
  readonly #printed: number[];
  readonly #out: WriteStream;
  #rows = 0;
  #drawn = 0;

  constructor(names: string[], out: WriteStream = process.stdout) {
    this.#names = names;
    this.#texts = names.map(() => '');
    this.#printed = names.map(() => 0);
    this.#out = out;
  }

  add(lane: number, text: string): void {
    this.#texts[lane] += text;
    if (!this.#out.isTTY) this.#printLines(lane, false);
    else if (performance.now() - this.#drawn > REDRAW_MS) this.#draw();
  }

  end(): void {
    if (this.#out.isTTY) this.#draw();
    else for (let lane = 0; lane < this.#names.length; lane++) this.#printLines(lane, true);
  }

  #draw(): void {
    this.#drawn = performance.now();
    const width = Math.max(20, Math.floor((this.#out.columns ?? 100) / this.#names.length) - 3);
    const columns = this.#texts.map((text, i) => [this.#names[i]!, '─'.repeat(width), ...wrap(text, width)]);
    const height = Math.max(...columns.map((c) => c.length));
    const lines = Array.from({ length: height }, (_, row) =>
      columns.map((c) => (c[row] ?? '').padEnd(width)).join(' │ '),
    );
    this.#out.write(`${this.#rows ? `\x1b[${this.#rows}A` : ''}${lines.map((l) => `\x1b[2K${l}\n`).join('')}`);
    this.#rows = height;
  }

  /** Prints complete lines only, so that the streams stay readable. */
  #printLines(lane: number, all: boolean): void {
    const lines = wrap(this.#texts[lane]!, LINE_CHARS);
    const ready = all ? lines.length : lines.length - 1;
    for (; this.#printed[lane]! < ready; this.#printed[lane]!++)
      this.#out.write(`${this.#names[lane]!.padEnd(10)} │ ${lines[this.#printed[lane]!]}\n`);
  }
}
