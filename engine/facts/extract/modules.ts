/**
 * Reads imports and exports: `import`, `require`, `export`, assignments to `module.exports`, Python's `__all__`. Marks
 * exports as unclear if a file exports in other ways, for example at run time.
 */
import type { Node } from 'web-tree-sitter';
import { FUNCTIONS, NO_CODE, namesIn, PATTERNS, type Place, present, stringText } from './tree.ts';

export interface Exported {
  /** The name that other files import, or `module.exports`. */
  name: string;
  /** From 1. */
  line: number;
  /** `whole`: the value of `module.exports`. */
  as?: 'default' | 'whole';
}

export interface Exports {
  named: Exported[];
  /** Modules of `export * from`. */
  passedOn: { module: string; line: number }[];
  /** Line of Python's `__all__`, from 1. Without `__all__`, all public names are exported. */
  listLine?: number | undefined;
  isPython: boolean;
  /** There may be more exports. */
  unclear: boolean;
}

/** `exports` or `module.exports`. The length is compared first, because reading a node's text is slow. */
const isExports = (node: Node | null | undefined): boolean =>
  !!node &&
  /^(identifier|member_expression)$/.test(node.type) &&
  node.endIndex - node.startIndex <= 'module.exports'.length &&
  /^(?:module\.)?exports$/.test(node.text);

const CLASS = /^(abstract_)?class(_declaration)?$/;

export class ExportStatements {
  readonly found: Exports;
  /** Exports by assignment. Ignored in a file with export statements, where `exports` is an ordinary variable. */
  readonly #assigned: Pick<Exports, 'named' | 'unclear'> = { named: [], unclear: false };
  /** Types of nodes that must be visited, besides those of definitions. */
  readonly types: readonly string[];
  /** Whether the text may assign exports. Most files do not, so their calls are skipped. */
  readonly #mayAssign: boolean;

  constructor(text: string, isPython: boolean) {
    this.#mayAssign = isPython ? text.includes('__all__') : /\bexports\b/.test(text);
    this.found = { named: [], passedOn: [], isPython, unclear: false };
    this.types = isPython && this.#mayAssign ? ['augmented_assignment', 'call'] : [];
  }

  /** Reads a node that may export something. */
  read(node: Node, place: Place): void {
    if (node.type === 'export_statement') {
      if (place.parentType === 'program') this.#statement(node);
    } else if (!this.#mayAssign) return;
    else if (this.found.isPython) this.#listed(node, place);
    else if (node.type === 'assignment_expression') this.#assignment(node, place);
    else if (node.type === 'call_expression') this.#call(node);
    else if (node.type === 'variable_declarator') this.#alias(node);
  }

  /** Must be called after the last node. */
  end(): void {
    if (this.found.named.length + this.found.passedOn.length === 0 && !this.found.unclear)
      Object.assign(this.found, this.#assigned);
  }

  #statement(node: Node): void {
    const line = node.startPosition.row + 1;
    const source = stringText(node.childForFieldName('source'));
    const parts = present(node.children);
    const clause = parts.find(({ type }) => type === 'export_clause');
    const namespace = parts.find(({ type }) => type === 'namespace_export')?.firstNamedChild?.text;
    const declaration = node.childForFieldName('declaration');
    if (clause) {
      for (const specifier of present(clause.namedChildren).filter(({ type }) => type === 'export_specifier')) {
        const local = specifier.childForFieldName('name')?.text ?? '';
        this.#add(this.found, {
          name: specifier.childForFieldName('alias')?.text ?? local,
          line: specifier.startPosition.row + 1,
        });
      }
    } else if (namespace !== undefined) this.#add(this.found, { name: namespace, line });
    else if (source !== undefined) this.found.passedOn.push({ module: source, line });
    else if (parts.some(({ type }) => type === 'default')) this.#add(this.found, { name: 'default', line });
    else if (declaration)
      for (const part of declaredBy(declaration))
        this.#add(this.found, { name: part.text, line: part.startPosition.row + 1 });
    else if (parts.some(({ type }) => type === '=') && parts.some(({ type }) => type === 'identifier'))
      this.#whole(parts.find(({ type }) => type === 'identifier') as Node, line, this.found);
    else this.found.unclear = true;
  }

  /** `module.exports = …` and `exports.name = …`. */
  #assignment(node: Node, { inFunction }: Place): void {
    const [left, right] = [node.childForFieldName('left'), node.childForFieldName('right')];
    const isMember = isExports(left?.childForFieldName('object'));
    const isWhole = left?.type === 'member_expression' && isExports(left);
    if (!right || !(isMember || isWhole)) return;
    const name = left?.childForFieldName('property')?.text;
    const line = node.startPosition.row + 1;
    if (inFunction || (isMember && name === undefined)) this.#assigned.unclear = true;
    else if (isMember) {
      if (name !== undefined && name !== '__esModule') this.#add(this.#assigned, { name, line });
    } else if (right.type === 'object') for (const member of present(right.namedChildren)) this.#member(member);
    else this.#whole(right, line);
  }

  #whole(value: Node, line: number, into = this.#assigned): void {
    const isKnown = value.type === 'identifier' || FUNCTIONS.test(value.type) || CLASS.test(value.type);
    if (isKnown) this.#add(into, { name: 'module.exports', line, as: 'whole' });
    else into.unclear = true;
  }

  /** A member of an exported object. */
  #member(node: Node): void {
    const key =
      node.type === 'shorthand_property_identifier'
        ? node
        : (node.childForFieldName('key') ?? node.childForFieldName('name'));
    const name =
      key && /^(shorthand_property_identifier|property_identifier)$/.test(key.type) ? key.text : stringText(key);
    const line = node.startPosition.row + 1;
    if (node.type === 'comment') return;
    if (name === undefined) this.#assigned.unclear = true;
    else this.#add(this.#assigned, { name, line });
  }

  /** Calls such as `Object.assign(exports, …)`. */
  #call(node: Node): void {
    const given = present(node.childForFieldName('arguments')?.namedChildren);
    if (given.some(isExports) && stringText(given[1]) !== '__esModule') this.#assigned.unclear = true;
  }

  /** After `const app = exports = module.exports = {}`, assignments to `app` export, too. */
  #alias(node: Node): void {
    let value = node.childForFieldName('value');
    if (value?.type === 'assignment_expression') value = value.childForFieldName('left');
    if (isExports(value)) this.#assigned.unclear = true;
  }

  #listed(node: Node, { inFunction, owner }: Place): void {
    const object =
      node.type === 'call'
        ? node.childForFieldName('function')?.childForFieldName('object')
        : node.childForFieldName('left');
    if (object?.type !== 'identifier' || object.text !== '__all__' || inFunction || owner !== undefined) return;
    this.found.listLine ??= node.startPosition.row + 1;
    const [first, ...others] =
      node.type === 'call'
        ? present(node.childForFieldName('arguments')?.namedChildren)
        : present([node.childForFieldName('right')]);
    const method =
      node.type === 'call' ? node.childForFieldName('function')?.childForFieldName('attribute')?.text : 'extend';
    const items =
      method === 'append' && first
        ? [first]
        : method === 'extend' && /^(list|tuple)$/.test(first?.type ?? '')
          ? present(first?.namedChildren).filter(({ type }) => !NO_CODE.test(type))
          : [undefined];
    for (const item of others.length > 0 ? [undefined] : items) {
      const name = stringText(item);
      if (name === undefined) this.found.unclear = true;
      else this.#add(this.found, { name, line: (item as Node).startPosition.row + 1 });
    }
  }

  /** Adds an export. Overloads are added once. */
  #add({ named }: Pick<Exports, 'named'>, exported: Exported): void {
    if (exported.name === 'default') exported.as ??= 'default';
    if (!named.some(({ name, as }) => name === exported.name && as === exported.as)) named.push(exported);
  }
}

/** The names that a declaration defines. */
function declaredBy(declaration: Node): Node[] {
  if (/^(lexical_declaration|variable_declaration|ambient_declaration)$/.test(declaration.type))
    return present(declaration.namedChildren).flatMap(declaredBy);
  const name =
    declaration.childForFieldName('name') ?? (declaration.type === 'import_alias' ? declaration.firstNamedChild : null);
  return name ? (PATTERNS.test(name.type) ? namesIn(name) : [name]) : [];
}

export interface Import {
  module: string;
  line: number;
  /** The names in this file. */
  names: string[];
  /** Whether it is at the top level of the file. */
  top: boolean;
}

/** An `import` statement, or `export … from`. */
export function scriptImport(node: Node, { parentType }: Place): Import[] {
  const source =
    node.childForFieldName('source') ??
    present(node.namedChildren)
      .find(({ type }) => type === 'import_require_clause')
      ?.childForFieldName('source');
  if (source?.type !== 'string') return [];
  const specifiers = present(node.descendantsOfType(['import_specifier']));
  const taken = new Set(specifiers.flatMap((part) => present(part.namedChildren)).map(({ id }) => id));
  const names = [
    ...specifiers.map((part) => (part.childForFieldName('alias') ?? part.childForFieldName('name'))?.text ?? ''),
    ...present(node.descendantsOfType(['identifier']))
      .filter(({ id }) => !taken.has(id))
      .map(({ text }) => text),
  ];
  return [
    {
      module: source.text.slice(1, -1),
      line: node.startPosition.row + 1,
      names,
      top: parentType === 'program',
    },
  ];
}

/** `require('…')` and `import('…')`. */
export function required(node: Node, { parent, local, inBlock }: Place): Import[] {
  const argument = moduleOf(node);
  if (!argument) return [];
  const name = parent?.type === 'variable_declarator' ? parent.childForFieldName('name') : undefined;
  const names = name
    ? present(name.descendantsOfType(['identifier', 'shorthand_property_identifier_pattern'])).map(({ text }) => text)
    : [];
  return [{ module: argument.text.slice(1, -1), line: node.startPosition.row + 1, names, top: !local && !inBlock }];
}

function moduleOf(call: Node): Node | undefined {
  const argument = call.childForFieldName('arguments')?.firstNamedChild;
  const isText =
    argument?.type === 'string' ||
    (argument?.type === 'template_string' &&
      argument.namedChildren.every((child) => child?.type !== 'template_substitution'));
  return isText && /^(require|import)$/.test(call.childForFieldName('function')?.text ?? '') ? argument : undefined;
}

export const isRequire = (value: Node | null): boolean =>
  value?.type === 'call_expression' &&
  value.childForFieldName('function')?.text === 'require' &&
  moduleOf(value) !== undefined;

export function pythonImports(node: Node, { parentType }: Place): Import[] {
  const line = node.startPosition.row + 1;
  const top = parentType === 'module';
  const parts = present(node.childrenForFieldName('name'));
  const nameIn = (part: Node): string => (part.childForFieldName('alias') ?? part).text;
  if (node.type === 'import_statement')
    return parts.map((part) => ({
      module: (part.type === 'aliased_import' ? (part.childForFieldName('name') ?? part) : part).text,
      line,
      names: [nameIn(part)],
      top,
    }));
  const module = node.type === 'future_import_statement' ? '__future__' : node.childForFieldName('module_name')?.text;
  if (module === undefined) return [];
  // `from . import views` imports a module of this package.
  if (/^\.+$/.test(module) && parts.length > 0)
    return parts.map((part) => ({
      module: `${module}${(part.childForFieldName('name') ?? part).text}`,
      line,
      names: [nameIn(part)],
      top,
    }));
  return [
    {
      module,
      line,
      names: parts.map(nameIn),
      top,
    },
  ];
}
