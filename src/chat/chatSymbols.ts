/**
 * Definitions in a document, as reported by its language's extension. If that does not answer in time, lines that look
 * like definitions.
 */
import { symbolsOf as namedByLanguage } from '../symbols.ts';
import * as vscode from '../vscode.ts';
import { methodName } from './applyBlock.ts';

export interface NamedRange {
  name: string;
  range: vscode.Range;
}

/** Lines that look like definitions are searched only in files with code that can be asked about. */
const MAX_SYMBOLS = 5000;

/** All definitions, outer ones before inner ones. */
export async function symbolsOf(document: vscode.TextDocument): Promise<NamedRange[]> {
  const found: NamedRange[] = (await namedByLanguage(document)).slice(0, MAX_SYMBOLS);
  return found.length ? found : byIndentation(document);
}

/** The innermost definition around a position; undefined at the top level of a file. */
export async function symbolAt(
  document: vscode.TextDocument,
  position: vscode.Position,
): Promise<NamedRange | undefined> {
  const around = (await symbolsOf(document)).filter(
    ({ range }) => range.start.line <= position.line && position.line <= range.end.line,
  );
  return around.reduce<NamedRange | undefined>(
    (inner, each) => (!inner || inner.range.contains(each.range) ? each : inner),
    undefined,
  );
}

const MODIFIERS = 'export|default|public|private|protected|static|abstract|async|pub|override|readonly';
const KEYWORDS = 'function\\*?|class|interface|enum|struct|trait|def|func|fn';
const DEFINITION = new RegExp(`^\\s*(?:(?:${MODIFIERS})\\s+)*(?:${KEYWORDS})\\s+([A-Za-z_$][\\w$]*)`);

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
