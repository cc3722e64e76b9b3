/** The functions, classes and the like of a document, as the language's own extension names them. */
import * as vscode from './vscode.ts';

export interface CodeSymbol {
  name: string;
  range: vscode.Range;
  /** Where its name stands. */
  nameRange: vscode.Range;
  /** How deep it is nested in other symbols. */
  depth: number;
}

/** A language server that is still starting does not keep the user waiting. */
const PATIENCE_MS = 2000;

/** Names of vscode.SymbolKind: what has a body of its own. */
const KINDS = new Set([
  'Class',
  'Constructor',
  'Enum',
  'Function',
  'Interface',
  'Method',
  'Module',
  'Namespace',
  'Struct',
]);

/** What has been found, for as long as the text is the same. */
const known = new WeakMap<vscode.TextDocument, { version: number; symbols: CodeSymbol[] }>();

/** In the order of the document; empty where no extension knows the language, or does not answer in time. */
export async function symbolsOf(document: vscode.TextDocument): Promise<CodeSymbol[]> {
  const { version } = document;
  const last = known.get(document);
  if (last && last.version === version) return last.symbols;
  const symbols = await ask(document);
  // None may mean that the language's extension is still starting.
  if (symbols.length && document.version === version) known.set(document, { version, symbols });
  return symbols;
}

async function ask(document: vscode.TextDocument): Promise<CodeSymbol[]> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, PATIENCE_MS, undefined);
  });
  try {
    const asked = vscode.commands.executeCommand<(vscode.DocumentSymbol | vscode.SymbolInformation)[] | undefined>(
      'vscode.executeDocumentSymbolProvider',
      document.uri,
    );
    const found = await Promise.race([asked, late]);
    return flatten(found ?? [], 0);
  } catch {
    // A provider that fails is one that knows nothing of this file; it reports its failure itself.
    return [];
  } finally {
    clearTimeout(timer);
  }
}

function flatten(found: readonly (vscode.DocumentSymbol | vscode.SymbolInformation)[], depth: number): CodeSymbol[] {
  return found.flatMap((symbol) => {
    const range = 'range' in symbol ? symbol.range : symbol.location.range;
    const nameRange =
      'selectionRange' in symbol
        ? symbol.selectionRange
        : new vscode.Range(range.start, range.start.translate(0, symbol.name.length));
    const inner = 'children' in symbol ? flatten(symbol.children, depth + 1) : [];
    return KINDS.has(vscode.SymbolKind[symbol.kind] ?? '')
      ? [{ name: nameOf(symbol.name), range, nameRange, depth }, ...inner]
      : inner;
  });
}

/** Some servers name a function with its parameters. */
function nameOf(name: string): string {
  return name.replace(/\(.*$/s, '').trim() || name;
}

/** The innermost symbol around a position. */
export function enclosing(symbols: readonly CodeSymbol[], position: vscode.Position): CodeSymbol | undefined {
  return symbols.filter(({ range }) => range.contains(position)).sort((a, b) => b.depth - a.depth)[0];
}
