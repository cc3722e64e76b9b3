/**
 * Where memory goes: the cache under its memory budget, the engine, its process, the machine and its graphics. And,
 * for those who know its design, the parts of the cache.
 */
import type { Gpu } from '../../engine/protocol/stats.ts';
import type { CacheFigures, CacheStrings } from '../monitor/cacheMessages.ts';
import { usedBytes } from '../monitor/samples.ts';
import { DOT, fillIn, numbers } from './cacheText.ts';
import { element, fill } from './dom.ts';

export class Memory {
  readonly root: HTMLElement;
  /** The parts of the cache. */
  readonly parts: HTMLElement;
  readonly #strings: CacheStrings;
  readonly #title = element('span', { class: 'hint' });
  readonly #rows = element('span', { class: 'hint' });
  readonly #segments = {
    pool: element('div', { class: 'pool' }),
    reserve: element('div', { class: 'reserve' }),
    store: element('div', { class: 'store' }),
    scratch: element('div', { class: 'scratch' }),
    buffers: element('div', { class: 'buffers' }),
  };
  readonly #used = element('div', { class: 'used' });
  readonly #usedBar = element('div', { class: 'bar', role: 'img' }, this.#used);
  readonly #bar = element('div', { class: 'bar', role: 'img' }, ...Object.values(this.#segments));
  readonly #legend = element('ul', { class: 'legend' });
  readonly #others = element('dl', { class: 'amounts' });

  constructor(strings: CacheStrings) {
    this.#strings = strings;
    this.root = element(
      'section',
      { class: 'memory' },
      element('h2', {}, strings.memory, ' ', this.#title),
      this.#usedBar,
      this.#others,
    );
    this.parts = element(
      'section',
      { class: 'parts' },
      element('h2', {}, strings.cacheParts, ' ', this.#rows),
      this.#bar,
      this.#legend,
    );
  }

  show({ stats, machine }: CacheFigures): void {
    const s = this.#strings;
    const { maxBytes, poolBytes, storeBytes, scratchBytes, bufferBytes, poolSlots } = stats;
    const used = usedBytes(stats);
    const of = fillIn(s.memoryOf, numbers.bytes(used), numbers.bytes(maxBytes));
    this.#title.textContent = stats.numEngines ? `${of}${DOT}${fillIn(s.shared, String(stats.numEngines))}` : of;
    const slots = fillIn(s.slots, numbers.count(poolSlots.free), numbers.count(poolSlots.total));
    this.#usedBar.setAttribute('aria-label', of);
    widen(this.#used, used, maxBytes);
    this.#rows.textContent = fillIn(s.rows, numbers.bytes(stats.kvBytesPerToken), stats.model?.kv ?? '');
    const held = poolSlots.total ? poolBytes * (poolSlots.held / poolSlots.total) : 0;
    const segments = this.#segments;
    widen(segments.pool, held, maxBytes);
    widen(segments.reserve, poolBytes - held, maxBytes);
    widen(segments.store, storeBytes, maxBytes);
    widen(segments.scratch, scratchBytes, maxBytes);
    widen(segments.buffers, bufferBytes, maxBytes);
    const parts: [string, string, number, string][] = [
      ['pool', s.pool, poolBytes, ` (${slots})`],
      ['store', s.store, storeBytes, ''],
      ['scratch', s.scratch, scratchBytes, ''],
      ['buffers', s.buffers, bufferBytes, ''],
      ['free', s.free, Math.max(0, maxBytes - used), ''],
    ];
    this.#bar.setAttribute(
      'aria-label',
      `${of}: ${parts.map(([, name, bytes]) => `${name} ${numbers.bytes(bytes)}`).join(', ')}`,
    );
    fill(
      this.#legend,
      ...parts.map(([kind, name, bytes, more]) =>
        element(
          'li',
          { class: kind },
          element('span', { class: `swatch ${kind}` }),
          `${name} ${numbers.bytes(bytes)}${more}`,
        ),
      ),
    );
    const { memory, model } = stats;
    const rows: [string, string][] = [
      [s.weights, `${numbers.bytes(model?.residentBytes ?? 0)}${model ? `${DOT}${model.precision}` : ''}`],
      [s.process, numbers.bytes(memory.processBytes)],
      [s.onDisk, this.#disk(stats)],
      [s.machine, fillIn(s.available, numbers.bytes(memory.availableBytes), numbers.bytes(memory.totalBytes))],
      [s.graphics, machine ? this.#graphics(machine.gpus) : '…'],
    ];
    fill(
      this.#others,
      ...rows.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))),
    );
  }

  #disk({ diskBytes, diskMaxBytes, diskFault }: CacheFigures['stats']): string {
    const kept =
      diskBytes > 0 || (diskMaxBytes > 0 && diskFault === undefined)
        ? fillIn(this.#strings.diskOf, numbers.bytes(diskBytes), numbers.bytes(diskMaxBytes))
        : this.#strings.diskOff;
    return diskFault === undefined
      ? kept
      : diskBytes > 0
        ? `${kept}; ${this.#strings.diskStopped}: ${diskFault}`
        : `${kept}: ${diskFault}`;
  }

  #graphics(gpus: readonly Gpu[] | null): string {
    const s = this.#strings;
    if (gpus === null) return s.gpuUnknown;
    if (gpus.length === 0) return s.noGpu;
    return gpus.map((gpu) => `${gpu.name}: ${this.#graphicsMemory(gpu)}; ${s.gpuUnused}`).join(DOT);
  }

  #graphicsMemory({ totalBytes, usedBytes, estimated }: Gpu): string {
    const s = this.#strings;
    if (totalBytes === null) return s.gpuSize;
    if (usedBytes !== null) return fillIn(s.gpuUsed, numbers.bytes(usedBytes), numbers.bytes(totalBytes));
    return fillIn(estimated ? s.gpuEstimate : s.gpuTotal, numbers.bytes(totalBytes));
  }
}

function widen({ style }: HTMLElement, bytes: number, maxBytes: number): void {
  style.width = `${maxBytes ? Math.min(100, (bytes / maxBytes) * 100) : 0}%`;
  style.minWidth = bytes > 0 ? '2px' : '0';
}
