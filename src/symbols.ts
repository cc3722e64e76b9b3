/** The functions, classes and other definitions of a document, as reported by the language's extension. */
import * as vscode from './vscode.ts';

export interface CodeSymbol {
  name: string;
  range: vscode.Range;
  /** Range of the name. */
  nameRange: vscode.Range;
  /** Nesting depth in other symbols. */
  depth: number;
}

/** A language server that is still starting must not keep the user waiting. */
const PATIENCE_MS = 2000;

/** Names of vscode.SymbolKind for definitions that have a body. */
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

/** Symbols of the last version of each document. */
const known = new WeakMap<vscode.TextDocument, { version: number; symbols: CodeSymbol[] }>();

/** In document order. Empty if no extension knows the language or it does not answer in time. */
export async function symbolsOf(document: vscode.TextDocument): Promise<CodeSymbol[]> {
  const { version } = document;
  const last = known.get(document);
  if (last && last.version === version) return last.symbols;
  const symbols = await ask(document);
  // An empty list may mean that the language's extension is still starting.
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
    // A failing provider counts as one without symbols. It reports its failure itself.
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

/** Some servers include the parameters in a function's name. */
function nameOf(name: string): string {
  return name.replace(/\(.*$/s, '').trim() || name;
}

/** The innermost symbol around a position. */
export function enclosing(symbols: readonly CodeSymbol[], position: vscode.Position): CodeSymbol | undefined {
  return symbols.filter(({ range }) => range.contains(position)).sort((a, b) => b.depth - a.depth)[0];
}
