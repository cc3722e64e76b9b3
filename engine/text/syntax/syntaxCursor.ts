/**
 * Finds in a syntax tree whether code may be written at a place, which brackets are open, and whether a line or a block
 * comes next. Reads tokens instead of rules, because unfinished code is mostly an error node with correct tokens.
 */
import type { Node, Tree, TreeCursor } from 'web-tree-sitter';

export interface CursorSyntax {
  /** The cursor is in a comment or a string, where a completion has one line only. */
  inText: boolean;
  /** A block or another bracket opens at the end of the cursor's line, or right before its blank line. */
  blockStart: boolean;
  /** A statement or member may start on the cursor's blank line. */
  statementStart: boolean;
  /** The brackets that are open at the cursor, outermost first. */
  open: OpenBracket[];
}

export interface OpenBracket {
  closer: string;
  /** Offset of the opening bracket. */
  start: number;
  /** Whether it contains statements or members instead of values. */
  block: boolean;
}

const CLOSERS: Readonly<Record<string, string>> = {
  '{': '}',
  '(': ')',
  '[': ']',
  '#{': '}',
  '${': '}',
  '@{': '}',
  '$(': ')',
  '@(': ')',
};
const QUOTES = new Set(['"', "'", '`', '"""', "'''"]);
/** Matches any of the alternatives as a whole. */
const oneOf = (alternatives: string): RegExp => new RegExp(`^(${alternatives.trim().split(/\s+/).join('|')})$`);

/** Rules whose braces contain values or names. */
const VALUES = oneOf(String.raw`
  object object_pattern dictionary\w* set hash\w* literal_value \w*initializer\w* array\w* list tuple
  named_imports export_clause import_\w+ use_list \w*_pattern
  jsx_expression template_substitution interpolation token_tree string\w* anonymous_object\w* expansion
`);
/** Text before a brace with values, for a brace whose rule is not known yet. */
const BEFORE_VALUES = /([=(,[:?+&|]|\b(return|import|export|default))\s*$/;
const TEXT = /comment|string|heredoc|^regex$|^char(acter)?(_literal)?$|^template$/;
const CODE_IN_TEXT = /substitution|interpolation|^expansion$/;
/** After these tokens the next line continues the expression. */
const CONTINUES =
  /^(=|:=|\+=|-=|[-+*/%&|^!?.,]|&&|\|\||\?\?|==|!=|===|!==|<=|>=|\?\.|::|and|or|not|in|is|extends|implements)$/;
const PYTHON_HEADER = /^\s*(async\s+)?(def|class|if|elif|else|for|while|try|except|finally|with|match|case)\b/;
const CASE_RULES = /(case|default|labeled|access_specifier|switch|communication)/;
const RUBY_KEYWORDS = 'def|class|module|if|unless|while|until|case|begin|for|else|elsif|ensure|rescue|when';
const RUBY_HEADER = new RegExp(
  String.raw`^\s*((private|protected|public)\s+)?(${RUBY_KEYWORDS})\b(?!.*\bend\s*$)(?!.*\bthen\b.)`,
);
const BASH_HEADER = /(^|[\s;])(then|do|else)$|^\s*case\b.*\bin$/;

export function cursorSyntax(tree: Tree, grammar: string, text: string, offset: number): CursorSyntax {
  const brackets = openBrackets(tree, text, offset);
  const open = brackets.filter(({ closer }) => !QUOTES.has(closer));
  const nothing = { blockStart: false, statementStart: false, open };
  if (open.length < brackets.length || insideText(tree, text, offset)) return { ...nothing, inText: true };
  const top = open.at(-1);
  const last = lastToken(tree, text, offset);
  const opens = last !== undefined && opensBlock(last, top, grammar, text);
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  if (text.slice(lineStart, offset).trim() !== '')
    return { ...nothing, inText: false, blockStart: opens && last.endIndex > lineStart };
  if (insideMarkup(tree, offset, top?.start ?? -1)) return { ...nothing, inText: false, statementStart: true };
  if (top && !top.block) return { ...nothing, inText: false };
  return {
    inText: false,
    blockStart: opens,
    statementStart: opens || !(last !== undefined && CONTINUES.test(last.type)),
    open,
  };
}

/** Whether an offset is inside a comment or a string, and not in code inside a string. */
export function insideText(tree: Tree, text: string, offset: number): boolean {
  if (offset === 0) return false;
  for (
    let node = tree.rootNode.descendantForIndex(offset - 1, Math.min(offset, text.length));
    node;
    node = node.parent
  ) {
    const inside = node.startIndex < offset && offset < node.endIndex;
    if (inside && CODE_IN_TEXT.test(node.type)) return false;
    if (!TEXT.test(node.type) || node.startIndex >= offset) continue;
    // A line comment continues at its end.
    if (
      inside ||
      (node.type.includes('comment') &&
        node.endIndex === offset &&
        !/(\*\/|-->|=end)$/.test(text.slice(node.startIndex, offset)))
    )
      return true;
  }
  return false;
}

/** Brackets, and quotes of unfinished strings, that are open at an offset. */
function openBrackets(tree: Tree, text: string, offset: number): OpenBracket[] {
  const stack: OpenBracket[] = [];
  eachToken(tree, 0, offset, true, (cursor) => countBracket(stack, cursor, text));
  return stack;
}

/** Updates the stack of open brackets with a token. False for a closing bracket without an opening one. */
export function countBracket(stack: OpenBracket[], cursor: TreeCursor, text: string): boolean {
  const type = cursor.nodeType;
  const start = cursor.startIndex;
  const closer = CLOSERS[type];
  if (closer !== undefined) {
    const rule = cursor.currentNode.parent?.type ?? '';
    stack.push({
      closer,
      start,
      block:
        type === '{' &&
        (rule === 'ERROR' ? !BEFORE_VALUES.test(text.slice(Math.max(0, start - 40), start)) : !VALUES.test(rule)),
    });
  } else if (type === '}' || type === ')' || type === ']') {
    const at = stack.findLastIndex((bracket) => bracket.closer === type);
    if (at < 0) return false;
    stack.length = at;
  } else if (isQuote(type)) {
    const quote = text.slice(start, cursor.endIndex).replace(/^\w+/, '');
    const top = stack.at(-1)?.closer ?? '';
    if (top === quote) stack.pop();
    else if (
      QUOTES.has(quote) &&
      !QUOTES.has(top) &&
      (type === 'string_start' || cursor.currentNode.parent?.type === 'ERROR')
    )
      stack.push({ closer: quote, start, block: false });
  }
  return true;
}

function isQuote(type: string): boolean {
  return QUOTES.has(type) || type === 'string_start' || type === 'string_end';
}

/**
 * Visits the tokens that begin in [from, to), in order. `skip`: leaves out subtrees without an error, whose brackets
 * are balanced.
 */
export function eachToken(
  tree: Tree,
  from: number,
  to: number,
  skip: boolean,
  visit: (cursor: TreeCursor) => void,
): void {
  const cursor = tree.walk();
  try {
    for (;;) {
      if (cursor.startIndex >= to) return;
      const passed =
        cursor.endIndex <= from ||
        (skip &&
          cursor.endIndex <= to &&
          cursor.startIndex < cursor.endIndex &&
          !isToken(cursor) &&
          !cursor.currentNode.hasError);
      if (!passed && cursor.gotoFirstChild()) continue;
      // A missing token has no width.
      if (!passed && cursor.startIndex >= from && cursor.startIndex < cursor.endIndex) visit(cursor);
      while (!cursor.gotoNextSibling()) if (!cursor.gotoParent()) return;
    }
  } finally {
    cursor.delete();
  }
}

function isToken(cursor: TreeCursor): boolean {
  return !cursor.nodeIsNamed || isQuote(cursor.nodeType);
}

/** The last token before the offset. Skips comments and white space. */
function lastToken(tree: Tree, text: string, offset: number): Node | undefined {
  for (let end = offset, comments = 0; comments < 50; comments++) {
    while (end > 0 && /\s/.test(text[end - 1] as string)) end--;
    if (end === 0) return undefined;
    let node = tree.rootNode.descendantForIndex(end - 1, end);
    if (!node) return undefined;
    let comment: Node | undefined;
    for (let up: Node | null = node; up; up = up.parent) if (up.type.includes('comment')) comment = up;
    if (!comment) {
      while (
        node.childCount > 0 &&
        node.lastChild &&
        node.lastChild.endIndex === end &&
        node.lastChild.startIndex < end
      )
        node = node.lastChild;
      return node;
    }
    end = comment.startIndex;
  }
  return undefined;
}

/** Whether the token opens a block that contains the text after it. */
function opensBlock(last: Node, top: OpenBracket | undefined, grammar: string, text: string): boolean {
  if (top?.start === last.startIndex) return true;
  const rule = last.parent?.type ?? '';
  const lineStart = text.lastIndexOf('\n', last.startIndex) + 1;
  const line = text.slice(lineStart, last.endIndex);
  if (grammar === 'ruby')
    return RUBY_HEADER.test(line) || last.type === 'do' || /\bdo\s*\|[^|]*\|$/.test(line) || last.type === 'then';
  if (grammar === 'bash') return BASH_HEADER.test(line);
  if (last.type === '=>') return true;
  if (last.type !== ':') return false;
  if (grammar === 'python')
    return PYTHON_HEADER.test(line) || (top === undefined && /_(definition|statement|clause)$/.test(rule));
  return CASE_RULES.test(rule) || /^\s*(case\b.*|default\s*):$/.test(line);
}

/** Whether an offset is between the tags of an element inside the innermost bracket. */
function insideMarkup(tree: Tree, offset: number, bracketStart: number): boolean {
  if (offset === 0) return false;
  for (let node = tree.rootNode.descendantForIndex(offset - 1, offset); node; node = node.parent) {
    if (node.startIndex <= bracketStart) return false;
    if (/^jsx_(element|fragment)$/.test(node.type) && node.startIndex < offset && offset < node.endIndex)
      return (node.firstChild?.endIndex ?? offset) <= offset && offset <= (node.lastChild?.startIndex ?? offset);
  }
  return false;
}
