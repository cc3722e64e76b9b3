/** The text of a file without the bodies of its functions, from its syntax tree. Does not decide when it is used. */
import type { Tree } from 'web-tree-sitter';

export interface Outline {
  text: string;
  /** Lines of the file that are left out. */
  numLines: number;
}

interface Body {
  from: number;
  to: number;
  numLines: number;
}

/** Nodes that may have a body, in any grammar. */
const FUNCTION = /function|method|constructor|closure|lambda|func_literal/;
/** A shorter body stays: the mark in its place takes as much room. */
const MIN_LINES = 3;

/**
 * Two outlines, the longer one first: without the bodies of functions that contain no others, and without those of the
 * outer functions. One if they are equal, none without a long body.
 */
export function outlinesOf(tree: Tree, lf: string): Outline[] {
  const bodies = bodiesOf(tree);
  const inner = bodies.filter(({ to }, i) => (bodies[i + 1]?.from ?? to) >= to);
  const outer: Body[] = [];
  for (const body of bodies) if (body.from >= (outer.at(-1)?.to ?? 0)) outer.push(body);
  const kinds = inner.every((body, i) => body === outer[i]) ? [outer] : [inner, outer];
  return kinds.filter((left) => left.length > 0).map((left) => without(lf, left));
}

/** In the order of the text, an outer body before the inner ones. */
function bodiesOf(tree: Tree): Body[] {
  const bodies: Body[] = [];
  const cursor = tree.walk();
  try {
    for (;;) {
      const body = FUNCTION.test(cursor.nodeType) ? cursor.currentNode.childForFieldName('body') : null;
      const numLines = body ? body.endPosition.row - body.startPosition.row + 1 : 0;
      // Some grammars have a node for the function and one for its kind, with the same body.
      if (body && numLines >= MIN_LINES && bodies.at(-1)?.from !== body.startIndex)
        bodies.push({ from: body.startIndex, to: body.endIndex, numLines });
      if (cursor.gotoFirstChild()) continue;
      while (!cursor.gotoNextSibling()) if (!cursor.gotoParent()) return bodies;
    }
  } finally {
    cursor.delete();
  }
}

function without(lf: string, bodies: readonly Body[]): Outline {
  let text = '';
  let end = 0;
  let numLeftOut = 0;
  for (const { from, to, numLines } of bodies) {
    const isBraced = lf[from] === '{';
    text += lf.slice(end, from) + (isBraced ? '{ ... }' : '...');
    end = to;
    // The line of the opening brace stays.
    numLeftOut += isBraced ? numLines - 1 : numLines;
  }
  return { text: text + lf.slice(end), numLines: numLeftOut };
}
