/** Waiting and running times of requests, for each class that had one. P99 is in the cell's tooltip. */
import type { ClassTimes, Quantiles } from '../../engine/protocol/stats.ts';
import type { Priority } from '../../engine/protocol/tasks.ts';
import type { CacheFigures, CacheStrings } from '../monitor/cacheMessages.ts';
import { DOT, fillIn, numbers } from './cacheText.ts';
import { element, fill } from './dom.ts';

/** Nobody waits for idle work. */
const CLASSES: readonly Exclude<Priority, 'idle'>[] = ['completion', 'chat', 'summary'];

export class Times {
  readonly root: HTMLElement;
  readonly #strings: CacheStrings;
  readonly #hint = element('span', { class: 'hint' });
  readonly #body = element('tbody', {});

  constructor(strings: CacheStrings) {
    this.#strings = strings;
    const columns = ['', strings.queued, strings.toFirst, strings.eachToken].map((name) =>
      element('th', { scope: 'col' }, name),
    );
    this.root = element(
      'section',
      { class: 'times', hidden: '' },
      element('h2', {}, strings.times, ' ', this.#hint),
      element('table', {}, element('thead', {}, element('tr', {}, ...columns)), this.#body),
    );
  }

  show({ stats: { classes, utilisation, tokens } }: CacheFigures): void {
    const s = this.#strings;
    const rows = CLASSES.filter((name) => classes[name].queueMs.count > 0);
    this.root.hidden = rows.length === 0;
    const drafts =
      tokens.drafted > 0 ? `${DOT}${fillIn(s.draftsRight, numbers.share(tokens.accepted / tokens.drafted))}` : '';
    this.#hint.textContent = `${s.medians}${DOT}${fillIn(s.busy, numbers.share(utilisation))}${drafts}`;
    fill(this.#body, ...rows.map((name) => this.#row(s.kinds[name], name, classes[name])));
  }

  #row(label: string, name: string, { queueMs, ttftMs, tpotMs }: ClassTimes): HTMLElement {
    return element(
      'tr',
      { 'data-class': name },
      element('th', { scope: 'row', ...(name === 'summary' ? { title: this.#strings.background } : {}) }, label),
      ...[queueMs, ttftMs, tpotMs].map((times) => this.#cell(times)),
    );
  }

  /** Median, then P95. */
  #cell({ p50, p95, p99, count }: Quantiles): HTMLElement {
    if (count === 0) return element('td', {}, '–');
    const title = fillIn(this.#strings.quantiles, numbers.duration(p50), numbers.duration(p95), numbers.duration(p99));
    return element(
      'td',
      { title },
      numbers.duration(p50),
      element('span', { class: 'most' }, ` ${fillIn(this.#strings.p95, numbers.duration(p95))}`),
    );
  }
}
