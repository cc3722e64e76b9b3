/** The files table: sortable, with rows that stay while their figures change, and buttons to pin and evict. */
import type { CacheStrings, FileRow } from '../monitor/cacheMessages.ts';
import { age, fillIn, numbers } from './cacheText.ts';
import { button, element } from './dom.ts';
import { icon } from './icons.ts';

export interface Sorting {
  column: string;
  descending: boolean;
}

interface Column {
  name: string;
  label: string;
  value(file: FileRow): string | number;
  text(file: FileRow): string;
}

interface FileActions {
  open(file: FileRow): void;
  pin(file: FileRow, pinned: boolean): void;
  evict(file: FileRow): void;
  sorted(sorting: Sorting): void;
}

interface Row {
  element: HTMLTableRowElement;
  file: FileRow;
  cells: Map<string, HTMLElement>;
  pin: HTMLButtonElement;
  evict: HTMLButtonElement;
}

export class Files {
  readonly root: HTMLElement;
  readonly #strings: CacheStrings;
  readonly #actions: FileActions;
  readonly #columns: Column[];
  readonly #heads = new Map<string, HTMLTableCellElement>();
  readonly #body = element('tbody', {});
  readonly #table: HTMLElement;
  readonly #none: HTMLElement;
  readonly #rows = new Map<string, Row>();
  #files: FileRow[] = [];
  #sorting: Sorting;

  constructor(strings: CacheStrings, sorting: Sorting | undefined, actions: FileActions) {
    this.#strings = strings;
    this.#actions = actions;
    this.#sorting = sorting ?? { column: 'size', descending: true };
    this.#columns = this.#definitions();
    const heads = this.#columns.map(({ name, label }) => {
      const head = element(
        'th',
        { scope: 'col', class: name },
        button(label, {}, () => this.#sortBy(name)),
      );
      this.#heads.set(name, head);
      return head;
    });
    const caption = element('caption', { class: 'live' }, strings.files);
    this.#table = element(
      'table',
      {},
      caption,
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          ...heads,
          element('th', { scope: 'col', class: 'actions' }, element('span', { class: 'live' }, strings.actions)),
        ),
      ),
      this.#body,
    );
    this.#none = element('p', { class: 'none' }, strings.noFiles);
    this.root = element('section', { class: 'files' }, element('h2', {}, strings.files), this.#table, this.#none);
  }

  show(files: FileRow[]): void {
    this.#files = files;
    const kept = new Set(files.map(({ docId }) => docId));
    for (const [docId, row] of this.#rows) {
      if (kept.has(docId)) continue;
      row.element.remove();
      this.#rows.delete(docId);
    }
    for (const file of files) this.#update(this.#rows.get(file.docId) ?? this.#newRow(file), file);
    this.#order();
    this.#table.hidden = files.length === 0;
    this.#none.hidden = files.length > 0;
  }

  #sortBy(column: string): void {
    const numeric = column !== 'file' && column !== 'tier' && column !== 'codec';
    this.#sorting = { column, descending: this.#sorting.column === column ? !this.#sorting.descending : numeric };
    this.#order();
    this.#actions.sorted(this.#sorting);
  }

  #order(): void {
    const { column, descending } = this.#sorting;
    for (const [name, head] of this.#heads) {
      if (name === column) head.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    }
    const { value } = this.#columns.find(({ name }) => name === column) ?? this.#columns[0]!;
    const sorted = [...this.#files].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      const order = typeof x === 'string' ? x.localeCompare(String(y)) : x - Number(y);
      return (descending ? -order : order) || a.name.localeCompare(b.name);
    });
    // Only misplaced rows are moved, because moving takes the focus from a row.
    for (const [i, { docId }] of sorted.entries()) {
      const row = this.#rows.get(docId)!.element;
      if (this.#body.children[i] !== row) this.#body.insertBefore(row, this.#body.children[i] ?? null);
    }
  }

  #newRow(file: FileRow): Row {
    const cells = new Map<string, HTMLElement>();
    const made: HTMLElement[] = this.#columns.map(({ name }, i) => {
      const cell = i === 0 ? element('th', { scope: 'row', class: name }) : element('td', { class: name });
      cells.set(name, cell);
      return cell;
    });
    const row: Row = {
      file,
      cells,
      pin: button('', { class: 'icon pin' }, () => this.#actions.pin(row.file, !row.file.pinned)),
      evict: button('', { class: 'icon evict' }, () => this.#actions.evict(row.file)),
      element: element('tr', { 'data-file': file.name }, ...made),
    };
    row.pin.append(icon('pin'));
    row.evict.append(icon('close'));
    row.element.append(element('td', { class: 'actions' }, row.pin, row.evict));
    cells
      .get('file')!
      .append(
        button(file.name, { class: 'name', title: fillIn(this.#strings.open, file.name) }, () =>
          this.#actions.open(row.file),
        ),
      );
    cells.get('tier')!.append(element('span', { class: 'swatch' }), element('span', {}));
    this.#rows.set(file.docId, row);
    return row;
  }

  #update(row: Row, file: FileRow): void {
    const s = this.#strings;
    row.file = file;
    const { dataset } = row.element;
    Object.assign(dataset, {
      tokens: String(file.tokens),
      bytes: String(file.bytes),
      tier: file.tier,
      pinned: String(file.pinned),
    });
    row.element.classList.toggle('closed', !file.open);
    for (const { name, text } of this.#columns) {
      const cell = row.cells.get(name)!;
      if (name === 'file') {
        cell.firstElementChild!.textContent = file.open ? file.name : `${file.name} (${s.closed})`;
        continue;
      }
      const target = name === 'tier' ? cell.lastElementChild! : cell;
      if (name === 'tier') cell.firstElementChild!.className = `swatch ${file.tier}`;
      const shown = text(file);
      if (target.textContent !== shown) target.textContent = shown;
      if (name === 'codec') cell.title = shown && file.codecNote;
      if (name === 'tokens')
        cell.title = [
          file.diskTokens && fillIn(s.diskTokens, numbers.count(file.diskTokens)),
          file.shiftedTokens && fillIn(s.shiftedTokens, numbers.count(file.shiftedTokens)),
        ]
          .filter(Boolean)
          .join('\n');
    }
    for (const [each, label] of [
      [row.pin, fillIn(file.pinned ? s.unpin : s.pin, file.name)],
      [row.evict, fillIn(s.evict, file.name)],
    ] as const) {
      each.setAttribute('aria-label', label);
      each.title = label;
    }
    row.pin.disabled = !file.open;
    row.evict.disabled = file.tokens === 0 && file.diskTokens === 0;
  }

  #definitions(): Column[] {
    const s = this.#strings;
    const tiers = { pool: s.pool, store: s.store, disk: s.disk, none: s.none };
    const tierOf = (file: FileRow): string => (file.twice ? s.both : tiers[file.tier]);
    return [
      { name: 'file', label: s.file, value: (file) => file.name, text: (file) => file.name },
      { name: 'tier', label: s.tier, value: tierOf, text: tierOf },
      {
        name: 'codec',
        label: s.codec,
        value: (file) => file.codecs.join(' + '),
        text: (file) => (file.tokens ? file.codecs.join(' + ') : ''),
      },
      {
        name: 'tokens',
        label: s.tokensColumn,
        value: (file) => file.tokens,
        text: (file) =>
          numbers.count(file.tokens) +
          (file.diskTokens ? ` +\u00a0${numbers.count(file.diskTokens)}` : '') +
          (file.shiftedTokens ? ` +\u00a0≈${numbers.count(file.shiftedTokens)}` : ''),
      },
      {
        name: 'size',
        label: s.size,
        value: (file) => file.bytes + file.shiftedBytes,
        text: (file) =>
          `${numbers.bytes(file.bytes)}${file.shiftedBytes ? ` + ≈${numbers.bytes(file.shiftedBytes)}` : ''}`,
      },
      { name: 'hits', label: s.hits, value: (file) => file.hits, text: (file) => numbers.count(file.hits) },
      {
        name: 'rate',
        label: s.hitRate,
        value: (file) => (file.hits ? file.hitRate : -1),
        text: (file) => (file.hits ? numbers.share(file.hitRate) : '–'),
      },
      // Most recent first: the shortest idle time ranks highest.
      { name: 'last', label: s.lastUse, value: (file) => -file.idleMs, text: (file) => age(file.idleMs, s) },
    ];
  }
}
