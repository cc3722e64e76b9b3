/** Reads what a file imports. */
import type { Node } from 'web-tree-sitter';
import { type Place, present } from './tree.ts';

export interface Import {
  module: string;
  line: number;
  /** Names in this file. */
  names: string[];
  /** At the top level of the file. */
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
  // `from . import views` imports a module of the package.
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
