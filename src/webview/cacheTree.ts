/**
 * The radix tree as an icicle plot: a node is below its parent, as wide as the tokens of its subtree. Arrow keys move,
 * Enter zooms into a node, Escape zooms out; one cell is in the tab order. A line below describes the cell at the
 * pointer, and screen readers read the same from the cell.
 */
import type { TreeNode } from '../../engine/protocol/stats.ts';
import type { CacheFigures, CacheStrings } from '../monitor/cacheMessages.ts';
import { age, DOT, fillIn, numbers } from './cacheText.ts';
import { button, element } from './dom.ts';
import { icon } from './icons.ts';

const ROW_PX = 24;
/** Deeper nodes are shown by zooming in. */
const MAX_ROWS = 8;

interface Cell {
  key: string;
  node: TreeNode;
  level: number;
  /** Shares of the width, 0..1. */
  left: number;
  width: number;
  parent: string | undefined;
  index: number;
  siblings: number;
}

export class Tree {
  readonly root: HTMLElement;
  readonly #strings: CacheStrings;
  readonly #drawing: HTMLElement;
  readonly #detail = element('p', { class: 'detail' });
  readonly #back: HTMLButtonElement;
  readonly #elements = new Map<string, HTMLElement>();
  #cells: Cell[] = [];
  #tree: TreeNode[] = [];
  #names = new Map<string, string>();
  /** The node zoomed into. */
  #inside: string | undefined;
  /** The node under the mouse or focus. */
  #pointed: string | undefined;
  /** The node in the tab order. */
  #current: string | undefined;

  constructor(strings: CacheStrings) {
    this.#strings = strings;
    this.#drawing = element('div', {
      class: 'icicle',
      role: 'tree',
      'aria-label': strings.tree,
      'aria-description': strings.treeHelp,
    });
    this.#back = button(strings.treeBack, { class: 'link' }, () => this.#look(undefined));
    this.root = element(
      'section',
      { class: 'tree' },
      element('h2', {}, strings.tree, ' ', element('span', { class: 'hint' }, strings.treeHint), this.#back),
      this.#drawing,
      this.#detail,
    );
    this.#drawing.addEventListener('keydown', (event) => this.#key(event));
    this.#drawing.addEventListener('pointerover', ({ target }) =>
      this.#point((target as Element).closest('[data-key]')?.getAttribute('data-key') ?? undefined),
    );
    this.#drawing.addEventListener('pointerleave', () => this.#point(undefined));
    this.#drawing.addEventListener('focusin', ({ target }) => {
      this.#current = (target as Element).getAttribute('data-key') ?? undefined;
      this.#point(this.#current);
      this.#setTabStops();
    });
    this.#drawing.addEventListener('focusout', () => this.#point(undefined));
    this.#drawing.addEventListener('click', ({ target }) =>
      this.#look((target as Element).closest('[data-key]')?.getAttribute('data-key') ?? undefined),
    );
  }

  show({ tree, files }: CacheFigures): void {
    this.#tree = tree;
    this.#names = new Map(files.map((file) => [file.docId, file.name]));
    this.#draw();
  }

  #draw(): void {
    this.#cells = layOut(this.#tree, this.#inside);
    if (this.#inside !== undefined && !this.#cells.some(({ key }) => key === this.#inside)) {
      this.#inside = undefined;
      this.#cells = layOut(this.#tree, undefined);
    }
    this.#back.hidden = this.#inside === undefined;
    this.root.hidden = this.#cells.length === 0;
    const keys = new Set(this.#cells.map(({ key }) => key));
    const focusLost =
      this.#current !== undefined &&
      !keys.has(this.#current) &&
      this.#elements.get(this.#current) === document.activeElement;
    for (const [key, cell] of this.#elements) {
      if (keys.has(key)) continue;
      cell.remove();
      this.#elements.delete(key);
    }
    for (const cell of this.#cells) this.#place(cell);
    this.#drawing.style.height = `${(Math.max(-1, ...this.#cells.map(({ level }) => level)) + 1) * ROW_PX}px`;
    if (this.#current === undefined || !keys.has(this.#current)) this.#current = this.#cells[0]?.key;
    this.#setTabStops();
    if (focusLost && this.#current !== undefined) this.#elements.get(this.#current)?.focus();
    this.#tell();
  }

  #place({ key, node, level, left, width, index, siblings }: Cell): void {
    let cell = this.#elements.get(key);
    if (!cell) {
      cell = element('div', { role: 'treeitem', 'data-key': key }, icon('pin'), element('span', {}));
      this.#elements.set(key, cell);
      this.#drawing.append(cell);
    }
    const pinned = node.pinned && node.kind === 'file';
    const states = [node.inUse ? 'running' : '', pinned ? 'pinned' : ''];
    cell.className = ['cell', node.kind, `tier-${node.tier}`, ...states].join(' ').trim();
    const shown = `${this.#name(node)} · ${numbers.count(node.tokens)}`;
    cell.lastElementChild!.textContent = shown;
    cell.setAttribute('aria-level', String(level + 1));
    cell.setAttribute('aria-posinset', String(index + 1));
    cell.setAttribute('aria-setsize', String(siblings));
    // Voice control needs the visible text in the label.
    cell.setAttribute('aria-label', `${shown}: ${this.#describe(node)}`);
    cell.setAttribute('aria-selected', String(key === this.#inside));
    Object.assign(cell.style, { left: `${left * 100}%`, width: `${width * 100}%`, top: `${level * ROW_PX}px` });
  }

  #name(node: TreeNode): string {
    const s = this.#strings;
    switch (node.kind) {
      case 'header':
        return s.header;
      case 'file':
        return baseName(this.#names.get(node.docId ?? '') ?? node.label);
      case 'others':
        return fillIn(s.others, numbers.count(node.runs));
      case 'request':
        return s.kinds[node.label as keyof CacheStrings['kinds']] ?? s.outdated;
    }
  }

  #describe(node: TreeNode): string {
    const s = this.#strings;
    const tiers = { pool: s.pool, store: s.store, disk: s.disk, none: s.none };
    const file = node.docId === undefined ? '' : (this.#names.get(node.docId) ?? '');
    const parts = [
      node.kind === 'file' ? file || node.label : this.#name(node),
      ...(node.kind !== 'file' && file ? [file] : []),
      fillIn(s.tokens, numbers.count(node.tokens)),
      ...(node.tier === 'none' ? [] : [tiers[node.tier]]),
    ];
    if (node.inUse) parts.push(s.running);
    if (node.pinned) parts.push(s.pinned);
    parts.push(`${s.lastUse}: ${age(node.idleMs, s)}`);
    return parts.join(DOT);
  }

  #point(key: string | undefined): void {
    this.#pointed = key;
    this.#tell();
  }

  #tell(): void {
    const pointed =
      this.#cells.find(({ key }) => key === this.#pointed) ??
      this.#cells.find(({ key }) => this.#elements.get(key) === document.activeElement);
    this.#detail.textContent = pointed ? this.#describe(pointed.node) : this.#strings.treeHelp;
  }

  /** Zooms into a node, so that its subtree takes the whole width; undefined shows the whole tree. */
  #look(key: string | undefined): void {
    const hasMore = this.#cells.find((cell) => cell.key === key)?.node.children.length;
    this.#inside = key === this.#inside || !hasMore ? undefined : key;
    this.#draw();
  }

  #setTabStops(): void {
    for (const [key, cell] of this.#elements) cell.tabIndex = key === this.#current ? 0 : -1;
  }

  #key(event: KeyboardEvent): void {
    const at = this.#cells.find(({ key }) => key === this.#current);
    if (!at) return;
    const row = this.#cells.filter(({ level }) => level === at.level);
    const targets: Record<string, () => Cell | undefined> = {
      ArrowRight: () => row[row.indexOf(at) + 1],
      ArrowLeft: () => row[row.indexOf(at) - 1],
      ArrowDown: () => this.#cells.find(({ parent }) => parent === at.key),
      ArrowUp: () => this.#cells.find(({ key }) => key === at.parent),
      Home: () => row[0],
      End: () => row.at(-1),
    };
    if (event.key === 'Enter' || event.key === ' ') this.#look(at.key);
    else if (event.key === 'Escape' && this.#inside !== undefined) this.#look(undefined);
    else if (targets[event.key]) {
      const next = targets[event.key]!();
      if (next) this.#elements.get(next.key)?.focus();
    } else return;
    event.preventDefault();
  }
}

/** The cells to draw. `inside` and its ancestors take the whole width, which its subtree shares. */
function layOut(tree: TreeNode[], inside: string | undefined): Cell[] {
  const cells: Cell[] = [];
  let nodes = tree;
  let parent: string | undefined;
  let level = 0;
  while (inside !== undefined && parent !== inside) {
    const next = keyed(nodes, parent).find(({ key }) => inside === key || inside.startsWith(`${key}\n`));
    if (!next) break;
    cells.push({ ...next, level: level++, left: 0, width: 1, parent, index: 0, siblings: 1 });
    nodes = next.node.children;
    parent = next.key;
  }
  const tokenWidth = 1 / (sum(nodes.map(weight)) || 1);
  const lay = (siblings: TreeNode[], at: number, row: number, above: string | undefined): void => {
    let left = at;
    for (const [index, { node, key }] of keyed(siblings, above).entries()) {
      const width = weight(node) * tokenWidth;
      cells.push({ key, node, level: row, left, width, parent: above, index, siblings: siblings.length });
      if (row + 1 < MAX_ROWS) lay(node.children, left, row + 1, key);
      left += width;
    }
  };
  lay(nodes, 0, level, parent);
  return cells;
}

/** Keys that stay with the nodes while the tree grows around them. */
function keyed(nodes: TreeNode[], parent = ''): { node: TreeNode; key: string }[] {
  const seen = new Map<string, number>();
  return nodes.map((node) => {
    const name = `${node.kind}:${node.label}:${node.docId ?? ''}`;
    const nth = seen.get(name) ?? 0;
    seen.set(name, nth + 1);
    return { node, key: `${parent}\n${name}:${nth}` };
  });
}

/** Tokens of a node and its subtree. */
function weight(node: TreeNode): number {
  return node.tokens + sum(node.children.map(weight));
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, n) => total + n, 0);
}

function baseName(path: string): string {
  return path.split(/[\\/]/).at(-1) ?? path;
}
