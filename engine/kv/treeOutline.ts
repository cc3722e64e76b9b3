/**
 * The radix tree as the monitor draws it: shows the largest nodes near the root and joins the small ones. Pure. The
 * cost is bounded, however large the tree is.
 */
import type { TreeNode as OutlineNode, Tier } from '../protocol/stats.ts';
import { isShifted } from './laneIds.ts';
import { isUsed, type RadixTree, type RadixNode } from './radixTree.ts';

/** A file's block. */
export interface Block {
  docId: string;
  path: string;
  tokenIds: readonly number[];
  /** How many of them precede the file's text. */
  numHeaderTokens: number;
}

/** Nodes looked at: about a millisecond. */
const MAX_VISITED = 2000;
/** Nodes shown one by one. Each may have one more for its small children, so at most about 200 in total. */
const MAX_SHOWN = 96;

/**
 * A node, or a part of it. A node that begins inside a file's block and continues behind it (a chat whose prompt was
 * computed in one piece) is two pieces.
 */
interface Piece {
  node: RadixNode;
  kind: 'header' | 'file' | 'request';
  label: string;
  docId: string | undefined;
  tokens: number;
  parent: Piece | null;
  children: Piece[];
  /** Including all pieces below it. */
  totalTokens: number;
  totalNodes: number;
}

/** Which block the first tokens of a node belong to; null: to several. */
interface Claim {
  block: Block | null;
  length: number;
}

export function outline(tree: RadixTree, blocks: Iterable<Block>, now: number): OutlineNode[] {
  const pieces = visit(tree, claims(tree, blocks));
  const roots: Piece[] = [];
  let numTokens = 0;
  let numNodes = 0;
  for (const piece of pieces.toReversed()) {
    numTokens += piece.tokens;
    numNodes += piece.totalNodes - sum(piece.children, (child) => child.totalNodes);
    if (!piece.parent) roots.push(piece);
    else {
      piece.parent.totalTokens += piece.totalTokens;
      piece.parent.totalNodes += piece.totalNodes;
    }
  }
  const shown = shownNodes(roots, now);
  // Nodes that were too deep or too many to be looked at.
  if (numTokens < tree.numTokens)
    shown.push({ ...OTHERS, tokens: tree.numTokens - numTokens, runs: tree.numNodes - numNodes });
  return shown;
}

const OTHERS: OutlineNode = {
  kind: 'others',
  label: '',
  tokens: 0,
  runs: 0,
  tier: 'none',
  inUse: false,
  pinned: false,
  idleMs: 0,
  children: [],
};

function claims(tree: RadixTree, blocks: Iterable<Block>): Map<RadixNode, Claim> {
  const found = new Map<RadixNode, Claim>();
  for (const block of blocks) {
    const match = tree.match(block.tokenIds);
    // A shorter match belongs to another file.
    if (match.numTokens <= block.numHeaderTokens) continue;
    for (const [i, node] of match.nodes.entries()) {
      const length = i === match.nodes.length - 1 ? match.lastLength : node.tokenIds.length;
      const earlier = found.get(node);
      if (earlier) Object.assign(earlier, { block: null, length: Math.max(length, earlier.length) });
      else found.set(node, { block, length });
    }
  }
  return found;
}

/** Level by level, parents before children. */
function visit(tree: RadixTree, claimed: Map<RadixNode, Claim>): Piece[] {
  const pieces: Piece[] = [];
  const add = (
    node: RadixNode,
    parent: Piece | null,
    tokens: number,
    claim: Claim | undefined,
    runs: number,
    from = 0,
  ): Piece => {
    const block = claim?.block;
    const piece: Piece = {
      node,
      kind: claim ? (block ? 'file' : 'header') : 'request',
      label: claim ? (block?.path ?? '') : isShifted(node.tokenIds[from]!) ? 'shifted' : node.tag,
      docId: claim ? block?.docId : parent?.docId,
      tokens,
      parent,
      children: [],
      totalTokens: tokens,
      totalNodes: runs,
    };
    pieces.push(piece);
    parent?.children.push(piece);
    return piece;
  };
  let level: { node: RadixNode; parent: Piece | null }[] = [...tree.root.children.values()].map((node) => ({
    node,
    parent: null,
  }));
  let left = MAX_VISITED;
  while (level.length > 0) {
    const next: typeof level = [];
    for (const { node, parent } of level) {
      if (left-- === 0) return pieces;
      const claim = claimed.get(node);
      const length = node.tokenIds.length;
      let last: Piece;
      if (claim && claim.length < length)
        last = add(node, add(node, parent, claim.length, claim, 0), length - claim.length, undefined, 1, claim.length);
      else last = add(node, parent, length, claim, 1);
      for (const child of node.children.values()) next.push({ node: child, parent: last });
    }
    level = next;
  }
  return pieces;
}

/** The largest pieces as nodes. The others of each parent are joined into one. */
function shownNodes(roots: Piece[], now: number): OutlineNode[] {
  const chosen = new Set<Piece>();
  let candidates = [...roots];
  while (chosen.size < MAX_SHOWN && candidates.length > 0) {
    const heaviest = candidates.reduce((a, b) => (b.totalTokens > a.totalTokens ? b : a));
    chosen.add(heaviest);
    candidates = candidates.filter((candidate) => candidate !== heaviest).concat(heaviest.children);
  }
  const show = (pieces: Piece[]): OutlineNode[] => {
    const nodes = pieces
      .filter((piece) => chosen.has(piece))
      .sort((a, b) => b.totalTokens - a.totalTokens)
      .map((piece): OutlineNode => ({ ...nodeOf(piece, now), children: show(piece.children) }));
    const rest = pieces.filter((piece) => !chosen.has(piece));
    if (rest.length > 0) {
      const first = rest.reduce((a, b) => (b.totalTokens > a.totalTokens ? b : a));
      nodes.push({
        ...nodeOf(first, now),
        kind: 'others',
        label: '',
        children: [],
        tokens: sum(rest, (piece) => piece.totalTokens),
        runs: sum(rest, (piece) => piece.totalNodes),
        inUse: rest.some((piece) => isUsed(piece.node)),
        pinned: rest.some((piece) => piece.node.pinned),
      });
    }
    return nodes;
  };
  return show(roots);
}

function nodeOf({ node, kind, label, docId, tokens }: Piece, now: number): Omit<OutlineNode, 'children'> {
  const tier: Tier = node.slots ? 'pool' : 'store';
  return {
    kind,
    label,
    ...(docId === undefined ? {} : { docId }),
    tokens,
    runs: 1,
    tier,
    inUse: isUsed(node),
    pinned: node.pinned,
    idleMs: Math.max(0, now - node.lastUse),
  };
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
