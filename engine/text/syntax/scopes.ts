/**
 * Reads from a syntax tree which functions are around a name, and whether it is declared there, in any language with a
 * grammar. Does not follow imports, members or types.
 */
import type { Language, Node, Tree, TreeCursor } from 'web-tree-sitter';

const ofTypes = (types: string): RegExp => new RegExp(`^(?:${types.trim().split(/\s+/).join('|')})$`);

export const FUNCTIONS = ofTypes(`
  function_declaration generator_function_declaration function_signature method_definition method_signature
  abstract_method_signature function_definition arrow_function function_expression generator_function lambda
  function_item function_signature_item closure_expression method_declaration func_literal constructor_declaration
  lambda_expression local_function_statement anonymous_function anonymous_method_expression method singleton_method
`);
const CLASSES = ofTypes(`
  class class_declaration abstract_class_declaration class_definition class_specifier struct_specifier impl_item
  trait_item struct_declaration record_declaration enum_declaration object module
  internal_module mod_item namespace_definition interface_declaration
`);
const NAMES = ofTypes('identifier shorthand_property_identifier shorthand_property_identifier_pattern variable_name');
/** Rules whose names are all parameters, except in types and default values. */
const PARAMETERS = /^(formal_|lambda_|closure_|method_|block_|inferred_)?parameters?$|^parameter_list$|_parameter$/;
/** Fields whose names are declared, by rule. */
const DECLARED: Readonly<Record<string, RegExp>> = {
  variable_declarator: /^name$/,
  assignment: /^left$/,
  named_expression: /^name$/,
  for_statement: /^(left|variable)$/,
  for_in_statement: /^left$/,
  for_in_clause: /^left$/,
  range_clause: /^left$/,
  foreach_statement: /^left$/,
  enhanced_for_statement: /^name$/,
  for_range_loop: /^declarator$/,
  for_expression: /^pattern$/,
  let_declaration: /^pattern$/,
  let_condition: /^pattern$/,
  short_var_declaration: /^left$/,
  var_spec: /^name$/,
  const_spec: /^name$/,
  init_declarator: /^declarator$/,
  declaration: /^declarator$/,
  catch_clause: /^parameter$/,
  catch_declaration: /^name$/,
  assignment_expression: /^left$/,
  catch_formal_parameter: /^name$/,
  pair_pattern: /^value$/,
  as_pattern: /^alias$/,
  as_pattern_target: /./,
  resource: /^name$/,
  arrow_function: /^parameter$/,
  lambda_expression: /^parameters$/,
};
/** Strings without code in them, and comments. */
const TEXT = /comment|^string_(content|fragment|start|end)$|_literal$|^(number|integer|float|escape_sequence)$/;
/** Rules that consist of declared names. */
const PASSES = /pattern|parameter|declarat|splat|spread|^expression_list$/;
const VALUES = /^(type|value|right|body|default_value|return_type|function|object|arguments|subscript)$/;

/** A place in a tree. */
export interface Scope {
  /** There is a name that is neither a member nor part of a text. */
  isName: boolean;
  /** The name is declared here. */
  declares: boolean;
  /** Inside code that the parser does not understand, as at the end of unfinished lines. */
  isBroken: boolean;
  /** Offsets of the functions around it, outermost first. */
  functions: readonly number[];
  /** Offset of the class around the innermost function, or -1. */
  ownerAt: number;
  /** Offset of the innermost class inside that function, or -1. */
  classAt: number;
}

/** What a rule means here. Kept by type id, because a file has thousands of nodes. */
interface Rule {
  name: string;
  isFunction: boolean;
  isClass: boolean;
  isName: boolean;
  /** Its names are parameters. */
  isParameters: boolean;
  isType: boolean;
  /** Contains no names. */
  isText: boolean;
  /** Consists of declared names if it is declared itself. */
  passes: boolean;
  declared: RegExp | undefined;
}

const rules = new WeakMap<Language, Map<number, Rule>>();

function ruleOf(language: Language, id: number, cursor: TreeCursor): Rule {
  let known = rules.get(language);
  if (!known) {
    known = new Map();
    rules.set(language, known);
  }
  let rule = known.get(id);
  if (!rule) {
    rule = describe(cursor.nodeType);
    known.set(id, rule);
  }
  return rule;
}

const describe = (name: string): Rule => ({
  name,
  isFunction: FUNCTIONS.test(name),
  isClass: CLASSES.test(name),
  isName: NAMES.test(name),
  isParameters: PARAMETERS.test(name),
  isType: name.includes('type'),
  isText: TEXT.test(name),
  passes: PASSES.test(name),
  declared: DECLARED[name],
});

/**
 * Reads places of one tree. Goes down from the root for each of them, because a file has far more nodes than names.
 */
export class Scopes {
  readonly #tree: Tree;
  readonly text: string;
  readonly #cursor: TreeCursor;

  private constructor(tree: Tree, text: string) {
    this.#tree = tree;
    this.text = text;
    this.#cursor = tree.walk();
  }

  /**
   * The result of `reader`. The scopes are valid until it returns. If web-tree-sitter 0.27.1 collects a cursor that
   * nobody has deleted, it frees the memory of another one. Then the whole grammar fails. So nobody may keep scopes.
   * @param text the tree's text
   */
  static read<T>(tree: Tree, text: string, reader: (scopes: Scopes) => T): T {
    const scopes = new Scopes(tree, text);
    try {
      return reader(scopes);
    } finally {
      scopes.#cursor.delete();
    }
  }

  at(offset: number): Scope {
    const cursor = this.#cursor;
    const { language, rootNode } = this.#tree;
    cursor.reset(rootNode);
    const functions: number[] = [];
    let classAt = -1;
    let ownerAt = -1;
    let declares = false;
    let isBroken = false;
    let above = ruleOf(language, cursor.nodeTypeId, cursor);
    while (gotoChildAt(cursor, offset)) {
      const rule = ruleOf(language, cursor.nodeTypeId, cursor);
      if (rule.isText) break;
      if (rule.name === 'ERROR') isBroken = true;
      const field: string = above.declared || declares || rule.isParameters ? (cursor.currentFieldName ?? '') : '';
      const isDeclared: boolean =
        above.declared?.test(field) === true ||
        (declares && !VALUES.test(field) && !rule.isType) ||
        (rule.isParameters && field !== 'result');
      if (rule.isName) {
        const isName = !isMember(this.text, cursor.startIndex, cursor.endIndex, above, cursor);
        // The name of a function is declared in the scope around it.
        if (above.isFunction && cursor.currentFieldName === 'name')
          return { isName: true, declares: true, isBroken, functions: functions.slice(0, -1), ownerAt, classAt };
        return { isName, declares: isDeclared, isBroken, functions, ownerAt, classAt };
      }
      declares = isDeclared && (rule.passes || rule.isParameters);
      if (rule.isFunction) {
        functions.push(cursor.startIndex);
        ownerAt = classAt;
        classAt = -1;
        declares = false;
      } else if (rule.isClass) classAt = cursor.startIndex;
      above = rule;
    }
    return { isName: false, declares: false, isBroken, functions, ownerAt, classAt };
  }

  /** The smallest named node around a part of the text. */
  nodeAt(start: number, end = start + 1): Node | null {
    return this.#tree.rootNode.namedDescendantForIndex(start, end);
  }

  /** The smallest node of some rules that begins at an offset. */
  nodeFrom(at: number, rules: RegExp): Node | undefined {
    let node = this.nodeAt(at);
    while (node?.startIndex === at && !rules.test(node.type)) node = node.parent;
    return node?.startIndex === at ? node : undefined;
  }
}

/** `gotoFirstChildForIndex` of web-tree-sitter 0.27.1 goes to the first child for any index. */
function gotoChildAt(cursor: TreeCursor, offset: number): boolean {
  if (!cursor.gotoFirstChild()) return false;
  while (cursor.endIndex <= offset) if (!cursor.gotoNextSibling()) return false;
  return cursor.startIndex <= offset;
}

/** Whether a name is that of a member, or of an argument. */
function isMember(text: string, start: number, end: number, rule: Rule, cursor: TreeCursor): boolean {
  if (rule.name === 'keyword_argument' && cursor.currentFieldName === 'name') return true;
  let at = start - 1;
  while (text[at] === ' ') at--;
  const before = text[at];
  return (
    (before === '.' && text[at - 1] !== '.') ||
    before === '@' ||
    (before === '>' && text[at - 1] === '-') ||
    (before === ':' && text[at - 1] === ':') ||
    text.startsWith('::', end)
  );
}
