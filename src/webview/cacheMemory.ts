/**
 * Where memory goes: the cache under its memory budget as a bar, and the engine, its process, the machine and its
 * graphics.
 */
import type { Gpu } from '../../engine/protocol/stats.ts';
import type { CacheFigures, CacheStrings } from '../monitor/cacheMessages.ts';
import { DOT, fillIn, numbers } from './cacheText.ts';
import { element, fill } from './dom.ts';

export class Memory {
  readonly root: HTMLElement;
  readonly #strings: CacheStrings;
  readonly #title = element('span', { class: 'hint' });
  readonly #segments = {
    pool: element('div', { class: 'pool' }),
    reserve: element('div', { class: 'reserve' }),
    store: element('div', { class: 'store' }),
    scratch: element('div', { class: 'scratch' }),
    buffers: element('div', { class: 'buffers' }),
  };
  readonly #bar = element('div', { class: 'bar', role: 'img' }, ...Object.values(this.#segments));
  readonly #legend = element('ul', { class: 'legend' });
  readonly #others = element('dl', { class: 'amounts' });

  constructor(strings: CacheStrings) {
    this.#strings = strings;
    this.root = element(
      'section',
      { class: 'memory' },
      element('h2', {}, strings.memory, ' ', this.#title),
      this.#bar,
      this.#legend,
      this.#others,
    );
  }

  show({ stats, machine }: CacheFigures): void {
    const s = this.#strings;
    const { maxBytes, poolBytes, storeBytes, scratchBytes, bufferBytes, poolSlots } = stats;
    const used = poolBytes + storeBytes + scratchBytes + bufferBytes;
    const of = fillIn(s.memoryOf, numbers.bytes(used), numbers.bytes(maxBytes));
    this.#title.textContent = stats.numEngines ? `${of}${DOT}${fillIn(s.shared, String(stats.numEngines))}` : of;
    const slots = fillIn(s.slots, numbers.count(poolSlots.free), numbers.count(poolSlots.total));
    const held = poolSlots.total ? poolBytes * (poolSlots.held / poolSlots.total) : 0;
    this.#widen('pool', held, maxBytes);
    this.#widen('reserve', poolBytes - held, maxBytes);
    this.#widen('store', storeBytes, maxBytes);
    this.#widen('scratch', scratchBytes, maxBytes);
    this.#widen('buffers', bufferBytes, maxBytes);
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

  #widen(kind: 'pool' | 'reserve' | 'store' | 'scratch' | 'buffers', bytes: number, maxBytes: number): void {
    const { style } = this.#segments[kind];
    style.width = `${maxBytes ? Math.min(100, (bytes / maxBytes) * 100) : 0}%`;
    style.minWidth = bytes > 0 ? '2px' : '0';
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
