/**
 * Definitions in a document, as its language's extension names them; where that does not answer in time, the lines that
 * look like one.
 */
import * as vscode from '../vscode.ts';
import { methodName } from './applyBlock.ts';

export interface NamedRange {
  name: string;
  range: vscode.Range;
}

/** A language server that is still starting is not waited for. */
const PATIENCE_MS = 1200;
const MAX_SYMBOLS = 5000;

/** All definitions, outer ones before those in them. */
export async function symbolsOf(document: vscode.TextDocument): Promise<NamedRange[]> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, PATIENCE_MS, undefined);
  });
  const asked = vscode.commands.executeCommand<(vscode.DocumentSymbol | vscode.SymbolInformation)[] | undefined>('vscode.executeDocumentSymbolProvider', document.uri);
  const symbols = await Promise.race([Promise.resolve(asked).catch(() => undefined), late]);
  clearTimeout(timer);
  const kinds = vscode.SymbolKind;
  const definitions = new Set<number>([kinds.Class, kinds.Constructor, kinds.Enum, kinds.Function, kinds.Interface, kinds.Method, kinds.Module, kinds.Namespace, kinds.Struct]);
  const found: NamedRange[] = [];
  const add = (symbol: vscode.DocumentSymbol | vscode.SymbolInformation) => {
    if (found.length >= MAX_SYMBOLS) return;
    const range = 'location' in symbol ? symbol.location.range : symbol.range;
    if (definitions.has(symbol.kind)) found.push({ name: symbol.name.replace(/\(.*$/, ''), range });
    if ('children' in symbol) for (const child of symbol.children) add(child);
  };
  for (const symbol of symbols ?? []) add(symbol);
  return found.length ? found : byIndentation(document);
}

/** The innermost definition around a position; at the top level of a file, none. */
export async function symbolAt(document: vscode.TextDocument, position: vscode.Position): Promise<NamedRange | undefined> {
  const around = (await symbolsOf(document)).filter(({ range }) => range.start.line <= position.line && position.line <= range.end.line);
  return around.reduce<NamedRange | undefined>((inner, each) => (!inner || inner.range.contains(each.range) ? each : inner), undefined);
}

const DEFINITION = /^\s*(?:(?:export|default|public|private|protected|static|abstract|async|pub|override|readonly)\s+)*(?:function\*?|class|interface|enum|struct|trait|def|func|fn)\s+([A-Za-z_$][\w$]*)/;

function byIndentation(document: vscode.TextDocument): NamedRange[] {
  const found: NamedRange[] = [];
  for (let line = 0; line < document.lineCount && found.length < MAX_SYMBOLS; line++) {
    const { text, firstNonWhitespaceCharacterIndex: indent } = document.lineAt(line);
    const name = text.length < 1000 ? (DEFINITION.exec(text)?.[1] ?? methodName(text)) : undefined;
    if (name === undefined) continue;
    let end = line;
    for (let next = line + 1; next < document.lineCount; next++) {
      const { isEmptyOrWhitespace, firstNonWhitespaceCharacterIndex, text: nextText } = document.lineAt(next);
      if (isEmptyOrWhitespace) continue;
      if (firstNonWhitespaceCharacterIndex > indent) end = next;
      else {
        if (firstNonWhitespaceCharacterIndex === indent && /^\s*[)\]}]/.test(nextText)) end = next;
        break;
      }
    }
    found.push({ name, range: new vscode.Range(line, 0, end, document.lineAt(end).text.length) });
  }
  return found;
}
