/**
 * Four small charts of the last minutes over one time axis. The title shows the current values, or those at the
 * pointer.
 */
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { CacheStrings } from '../monitor/cacheMessages.ts';
import { KEPT_MS, type Sample } from '../monitor/samples.ts';
import { fillIn, numbers } from './cacheText.ts';
import { element } from './dom.ts';

const HEIGHT = 96;
/** There are no samples in between, so the line has a gap. */
const GAP_MS = 5000;
/** Shortest time range shown. */
const MIN_MS = 60_000;

interface Chart {
  label: string;
  /** Names of theme colours. */
  colours: string[];
  of: (sample: Sample) => (number | null)[];
  text: (values: (number | null | undefined)[]) => string;
  /** The axis shows at least this value. */
  min: number;
}

export class Charts {
  readonly root: HTMLElement;
  readonly #strings: CacheStrings;
  readonly #charts: { chart: Chart; host: HTMLElement; value: HTMLElement; plot: uPlot | null }[];
  #samples: readonly Sample[] = [];

  constructor(strings: CacheStrings) {
    this.#strings = strings;
    this.#charts = this.#definitions().map((chart) => ({
      chart,
      host: element('div', { class: 'plot', role: 'img' }),
      value: element('span', { class: 'now' }),
      plot: null,
    }));
    const boxes = this.#charts.map(({ chart, host, value }) =>
      element('div', { class: 'chart' }, element('h3', {}, chart.label, value), host),
    );
    this.root = element(
      'section',
      { class: 'history' },
      element('h2', {}, fillIn(strings.history, KEPT_MS / 60_000)),
      element('div', { class: 'charts' }, ...boxes),
    );
    new ResizeObserver(() => this.#resize()).observe(this.root);
    // The theme changed: canvases do not follow by themselves.
    new MutationObserver(() => this.#rebuild()).observe(document.body, {
      attributes: true,
      attributeFilter: ['class'],
    });
  }

  show(samples: readonly Sample[]): void {
    this.#samples = samples;
    this.root.hidden = samples.length < 2;
    if (this.root.hidden) return;
    for (const each of this.#charts) {
      const data = table(samples, each.chart);
      if (each.plot) each.plot.setData(data);
      else each.plot = this.#plot(each.chart, each.host, each.value, data);
      if (each.plot.cursor.idx === null || each.plot.cursor.idx === undefined) this.#tell(each, data);
    }
  }

  #tell(
    { chart, host, value }: { chart: Chart; host: HTMLElement; value: HTMLElement },
    data: uPlot.AlignedData,
  ): void {
    const latest = data.slice(1).map((series) => [...series].reverse().find((each) => each !== null));
    value.textContent = chart.text(latest);
    host.setAttribute('aria-label', `${chart.label}: ${value.textContent}`);
  }

  #plot(chart: Chart, host: HTMLElement, value: HTMLElement, data: uPlot.AlignedData): uPlot {
    const style = getComputedStyle(document.body);
    const colour = (name: string) => style.getPropertyValue(name).trim() || style.color;
    const dim = colour('--vscode-descriptionForeground');
    const grid = { stroke: colour('--chart-grid'), width: 1 };
    const font = `10px ${style.fontFamily}`;
    return new uPlot(
      {
        width: Math.max(80, host.clientWidth),
        height: HEIGHT,
        legend: { show: false },
        cursor: { sync: { key: 'kvasir' }, drag: { x: false, y: false }, y: false, points: { size: 5 } },
        padding: [6, 26, 0, 0],
        scales: {
          x: { time: true, range: (_, min, max) => [Math.min(min, max - MIN_MS / 1000), max] },
          y: { range: (_, __, max) => [0, Math.max(max * 1.1, chart.min)] },
        },
        axes: [
          {
            stroke: dim,
            font,
            grid: { show: false },
            ticks: { show: false },
            size: 18,
            gap: 2,
            space: 70,
            values: (_, seconds) =>
              seconds.map((at) =>
                new Date(at * 1000).toLocaleTimeString(numbers.language, {
                  hour: '2-digit',
                  minute: '2-digit',
                  second: '2-digit',
                }),
              ),
          },
          {
            stroke: dim,
            font,
            grid,
            ticks: { show: false },
            size: 34,
            gap: 4,
            space: 28,
            values: (_, values) => values.map(numbers.figure),
          },
        ],
        series: [
          {},
          ...chart.colours.map((name) => ({
            stroke: colour(name),
            width: 1.5,
            fill: `color-mix(in srgb, ${colour(name)} 14%, transparent)`,
            points: { show: false },
          })),
        ],
        hooks: {
          setCursor: [
            (plot: uPlot) => {
              const { idx } = plot.cursor;
              if (idx === null || idx === undefined) this.#tell({ chart, host, value }, plot.data);
              else value.textContent = chart.text(plot.data.slice(1).map((series) => series[idx]));
            },
          ],
        },
      },
      data,
      host,
    );
  }

  #resize(): void {
    for (const { plot, host } of this.#charts)
      if (plot && host.clientWidth > 0 && plot.width !== host.clientWidth)
        plot.setSize({ width: host.clientWidth, height: HEIGHT });
  }

  #rebuild(): void {
    for (const each of this.#charts) {
      each.plot?.destroy();
      each.plot = null;
    }
    this.show(this.#samples);
  }

  #definitions(): Chart[] {
    const s = this.#strings;
    const one =
      (format: (value: number) => string) =>
      ([value]: (number | null | undefined)[]) =>
        value === null || value === undefined ? '–' : format(value);
    return [
      {
        label: s.chartBytes,
        colours: ['--vscode-charts-blue'],
        min: 1,
        of: (sample) => [sample.usedBytes / 1e6],
        text: one((megabytes) => numbers.bytes(megabytes * 1e6)),
      },
      {
        label: s.chartReused,
        colours: ['--vscode-charts-green'],
        min: 100,
        of: ({ reused }) => [reused === null ? null : reused * 100],
        text: one((value) => numbers.share(value / 100)),
      },
      {
        label: s.chartSpeed,
        colours: ['--vscode-charts-purple'],
        min: 10,
        of: ({ tokensPerSecond }) => [tokensPerSecond],
        text: one(numbers.figure),
      },
      {
        label: s.chartBatch,
        colours: ['--vscode-charts-yellow'],
        min: 2,
        of: ({ batch }) => [batch],
        text: one(numbers.figure),
      },
    ];
  }
}

/** Seconds, then a column for each line. Without activity the last value continues; without samples there is a gap. */
function table(samples: readonly Sample[], chart: Chart): uPlot.AlignedData {
  const times: number[] = [];
  const columns: (number | null)[][] = chart.colours.map(() => []);
  for (const [i, sample] of samples.entries()) {
    const before = samples[i - 1];
    const gap = before !== undefined && sample.at - before.at > GAP_MS;
    if (gap) {
      times.push((before.at + 1) / 1000);
      for (const column of columns) column.push(null);
    }
    times.push(sample.at / 1000);
    for (const [c, value] of chart.of(sample).entries())
      columns[c]!.push(value ?? (gap ? null : (columns[c]!.at(-1) ?? null)));
  }
  return [times, ...columns] as uPlot.AlignedData;
}
