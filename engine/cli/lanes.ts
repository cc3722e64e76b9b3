/** Several streams of text at once: columns side by side on a terminal, labelled lines elsewhere. */
import type { WriteStream } from 'node:tty';

const REDRAW_MS = 50;
const LINE_CHARS = 88;

/** Breaks text into lines of at most `width` characters, at spaces where there are any. */
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

export class Lanes {
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

  /** Complete lines only, so that the streams interleave legibly. */
  #printLines(lane: number, all: boolean): void {
    const lines = wrap(this.#texts[lane]!, LINE_CHARS);
    const ready = all ? lines.length : lines.length - 1;
    for (; this.#printed[lane]! < ready; this.#printed[lane]!++)
      this.#out.write(`${this.#names[lane]!.padEnd(10)} │ ${lines[this.#printed[lane]!]}\n`);
  }
}
