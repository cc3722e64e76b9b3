/** The four figures at the top of the cache panel, each with its recent history. */
import type { CacheFigures, CacheStrings } from '../monitor/cacheMessages.ts';
import { type Sample, usedBytes } from '../monitor/samples.ts';
import { DOT, fillIn, numbers } from './cacheText.ts';
import { element } from './dom.ts';

/** Samples in a sparkline: about two minutes while the panel is open. */
const SPARK_SAMPLES = 240;
const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 120;
const HEIGHT = 24;

interface Tile {
  name: string;
  label: string;
  /** Empty if there is no value yet. */
  value(figures: CacheFigures, samples: readonly Sample[]): string;
  note(figures: CacheFigures): string;
  of(sample: Sample): number | null;
  /** Top of the sparkline; the largest value if left out. */
  max?: number;
}

export class Tiles {
  readonly root = element('section', { class: 'tiles' });
  readonly #strings: CacheStrings;
  readonly #tiles: { tile: Tile; value: Element; note: Element; line: SVGPathElement; area: SVGPathElement }[];

  constructor(strings: CacheStrings) {
    this.#strings = strings;
    this.#tiles = this.#definitions().map((tile) => {
      const value = element('div', { class: 'value', 'data-part': tile.name });
      const note = element('div', { class: 'note' });
      const spark = document.createElementNS(SVG, 'svg');
      spark.setAttribute('class', 'spark');
      spark.setAttribute('viewBox', `0 0 ${WIDTH} ${HEIGHT}`);
      spark.setAttribute('preserveAspectRatio', 'none');
      spark.setAttribute('aria-hidden', 'true');
      const [area, line] = ['area', 'line'].map((name) => {
        const path = document.createElementNS(SVG, 'path');
        path.setAttribute('class', name);
        spark.append(path);
        return path;
      }) as [SVGPathElement, SVGPathElement];
      this.root.append(
        element('div', { class: `tile ${tile.name}` }, element('h2', {}, tile.label), value, note, spark),
      );
      return { tile, value, note, line, area };
    });
  }

  show(figures: CacheFigures, samples: readonly Sample[]): void {
    for (const { tile, value, note, line, area } of this.#tiles) {
      const shown = tile.value(figures, samples);
      value.textContent = shown || '–';
      const { failed } = figures.stats.requests;
      note.textContent = shown
        ? tile.note(figures)
        : failed > 0
          ? fillIn(this.#strings.failedNote, numbers.count(failed))
          : this.#strings.nothingYet;
      const d = sparkline(
        samples.slice(-SPARK_SAMPLES).map((sample) => tile.of(sample)),
        tile.max,
      );
      line.setAttribute('d', d);
      area.setAttribute('d', d && `${d}V${HEIGHT}H0Z`);
    }
  }

  #definitions(): Tile[] {
    const s = this.#strings;
    return [
      {
        name: 'reused',
        label: s.reused,
        value: ({ stats: { tokens } }) => (tokens.prompt ? numbers.share(tokens.promptCached / tokens.prompt) : ''),
        note: ({ stats: { tokens } }) =>
          fillIn(s.reusedNote, numbers.count(tokens.promptCached), numbers.count(tokens.prompt)),
        of: (sample) => sample.reused,
        max: 1,
      },
      {
        name: 'first-token',
        label: s.firstToken,
        value: ({ stats: { ttftMs } }) => (ttftMs.p95 ? numbers.duration(ttftMs.p95) : ''),
        note: ({ stats: { ttftMs } }) => fillIn(s.firstTokenNote, numbers.duration(ttftMs.p50)),
        of: (sample) => sample.firstTokenP95,
      },
      {
        name: 'speed',
        label: s.speed,
        // While nothing runs, the last value.
        value: ({ stats }, samples) =>
          stats.tokens.generated
            ? numbers.count(
                stats.tokensPerSecond ||
                  (samples.findLast(({ tokensPerSecond }) => tokensPerSecond > 0)?.tokensPerSecond ?? 0),
              )
            : '',
        note: ({ stats: { requests, tokens } }) => {
          const note =
            requests.running + requests.waiting
              ? fillIn(s.queueNote, numbers.count(requests.running), numbers.count(requests.waiting))
              : fillIn(s.speedNote, numbers.count(requests.done), numbers.count(tokens.generated));
          // First, because it matters most.
          return requests.failed > 0 ? `${fillIn(s.failedNote, numbers.count(requests.failed))}${DOT}${note}` : note;
        },
        of: (sample) => sample.tokensPerSecond,
      },
      {
        name: 'kept',
        label: s.kept,
        value: ({ stats }) => (stats.events.steps ? numbers.bytes(usedBytes(stats)) : ''),
        note: ({ files }) => fillIn(s.keptNote, numbers.count(files.filter(({ tokens }) => tokens > 0).length)),
        of: (sample) => sample.usedBytes,
      },
    ];
  }
}

/**
 * A path over the whole width, from 0 at the bottom to the largest value. Samples without a value repeat the one
 * before.
 */
function sparkline(values: readonly (number | null)[], top?: number): string {
  const filled: number[] = [];
  for (const value of values) if (value !== null || filled.length) filled.push(value ?? filled.at(-1)!);
  if (filled.length < 2) return '';
  const max = top ?? (Math.max(...filled) || 1);
  return filled
    .map((value, i) => {
      const x = (i / (filled.length - 1)) * WIDTH;
      const y = HEIGHT - 1.5 - (value / max) * (HEIGHT - 3);
      return `${i ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join('');
}
