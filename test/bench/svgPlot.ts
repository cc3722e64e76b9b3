/**
 * Draws bar charts as SVG text: groups of bars with whiskers for their spread. Readable on light and dark pages. Pure.
 */

export interface Bar {
  value: number;
  /** Ends of the whisker. Without them there is no whisker. */
  least?: number;
  most?: number;
}

export interface BarChart {
  title: string;
  /** Unit of the bars, shown after the title. */
  unit: string;
  groups: readonly string[];
  /** One bar for each group; null for no bar. */
  series: readonly { name: string; bars: readonly (Bar | null)[] }[];
}

const COLOURS = ['#3b82c4', '#e08a3c', '#4fa36a', '#b65fae', '#c9a227', '#7a7f8a', '#cf4f4f', '#49a6a6'];
const WIDTH = 720;
const HEIGHT = 380;
const MARGIN = { top: 56, right: 16, bottom: 64, left: 56 };
const LABEL_LINE = 13;
/** Approximate width of a label's character. */
const CHARACTER = 5.9;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
const at = (value: number): string => value.toFixed(1);

/** A round number at or above `top`, and the distance between the lines of the axis: 1, 2 or 5 times a power of ten. */
export function axis(top: number): { end: number; step: number } {
  if (!(top > 0)) return { end: 1, step: 1 };
  const power = 10 ** Math.floor(Math.log10(top / 4));
  const step = [1, 2, 5, 10].map((n) => n * power).find((s) => top / s <= 6) ?? 10 * power;
  return { end: Math.ceil(top / step - 1e-9) * step, step };
}

/** Lines of at most `width` characters, broken at spaces. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

export function barChart({ title, unit, groups, series }: BarChart): string {
  const all = series.flatMap(({ bars }) => bars.filter((bar) => bar !== null));
  const { end, step } = axis(Math.max(0, ...all.map((bar) => Math.max(bar.value, bar.most ?? 0))));
  const plotWidth = WIDTH - MARGIN.left - MARGIN.right;
  const plotHeight = HEIGHT - MARGIN.top - MARGIN.bottom;
  const y = (value: number): number => MARGIN.top + plotHeight * (1 - value / end);
  const groupWidth = plotWidth / Math.max(1, groups.length);
  const barWidth = Math.min(56, (groupWidth * 0.8) / Math.max(1, series.length));
  const text = (x: number, height: number, content: string, more = ''): string =>
    `<text x="${at(x)}" y="${at(height)}" ${more}>${escaped(content)}</text>`;
  const line = (x1: number, y1: number, x2: number, y2: number, more: string): string =>
    `<line x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}" ${more}/>`;

  const parts: string[] = [text(MARGIN.left, 20, `${title} (${unit})`, 'font-size="15" font-weight="600"')];
  for (let i = 0; i * step <= end + step / 2; i++) {
    parts.push(
      line(MARGIN.left, y(i * step), WIDTH - MARGIN.right, y(i * step), 'stroke="#888" stroke-opacity="0.35"'),
    );
    parts.push(
      text(
        MARGIN.left - 6,
        y(i * step) + 4,
        String(Number((i * step).toPrecision(6))),
        'font-size="11" text-anchor="end"',
      ),
    );
  }
  let legend = MARGIN.left;
  for (const [s, { name, bars }] of series.entries()) {
    const colour = COLOURS[s % COLOURS.length]!;
    parts.push(
      `<rect x="${at(legend)}" y="30" width="10" height="10" fill="${colour}"/>`,
      text(legend + 14, 39, name, 'font-size="11"'),
    );
    legend += 26 + 6 * name.length;
    for (const [g, bar] of bars.entries()) {
      if (bar === null) continue;
      const left = MARGIN.left + groupWidth * (g + 0.5) + barWidth * (s - series.length / 2);
      const middle = left + barWidth / 2;
      parts.push(
        `<rect x="${at(left + 1)}" y="${at(y(bar.value))}" width="${at(barWidth - 2)}" height="${at(plotHeight + MARGIN.top - y(bar.value))}" fill="${colour}"/>`,
      );
      if (bar.least !== undefined && bar.most !== undefined && bar.most > bar.least)
        parts.push(line(middle, y(bar.least), middle, y(bar.most), 'stroke="#888" stroke-width="1.5"'));
      parts.push(
        text(
          middle,
          y(Math.max(bar.value, bar.most ?? 0)) - 4,
          String(Number(bar.value.toPrecision(3))),
          'font-size="10" text-anchor="middle"',
        ),
      );
    }
  }
  for (const [g, name] of groups.entries()) {
    for (const [i, part] of wrapped(name, Math.floor(groupWidth / CHARACTER)).entries())
      parts.push(
        text(
          MARGIN.left + groupWidth * (g + 0.5),
          HEIGHT - MARGIN.bottom + 16 + LABEL_LINE * i,
          part,
          'font-size="11" text-anchor="middle"',
        ),
      );
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" fill="#777">\n<title>${escaped(title)}</title>\n${parts.join('\n')}\n</svg>\n`;
}
