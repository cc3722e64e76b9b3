/** Makes references to what a question is about: files, folders, selections and definitions. */
import { oneLine } from '../../engine/protocol/oneLine.ts';
import * as vscode from '../vscode.ts';
import { isSecret, SCHEMES } from '../completion/filter.ts';
import type { Config } from '../config.ts';
import type { ContextRef, TextRange } from './chatMessages.ts';

/** Equal for references to the same item. */
export function refId({ uri, range }: ContextRef): string {
  return range ? `${uri} ${range.startLine}:${range.startCharacter}-${range.endLine}:${range.endCharacter}` : uri;
}

export function fileRef(uri: vscode.Uri, kind: 'file' | 'folder' = 'file'): ContextRef {
  return { kind, uri: uri.toString(), name: baseName(uri), path: pathOf(uri) };
}

export function selectionRef(document: vscode.TextDocument, range: vscode.Range, symbol?: string): ContextRef {
  const [first, last] = [range.start.line + 1, range.end.line + (range.end.character || range.isEmpty ? 1 : 0)];
  const lines = first < last ? `${first}-${last}` : `${first}`;
  return {
    kind: 'selection',
    uri: document.uri.toString(),
    name: symbol ?? `${baseName(document.uri)}:${lines}`,
    path: `${pathOf(document.uri)}:${lines}`,
    range: {
      startLine: range.start.line,
      startCharacter: range.start.character,
      endLine: range.end.line,
      endCharacter: range.end.character,
    },
    ...(symbol === undefined ? {} : { symbol }),
  };
}

/** Most open files that are offered to attach. */
const MAX_OFFERED = 3;

/** Files of the editor's tabs that a click may attach: those in front first. Not secret files. */
export function openFiles(settings: Config['completion']): ContextRef[] {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  const refs = [...tabs]
    .sort((a, b) => Number(b.isActive) - Number(a.isActive))
    .flatMap(({ input }) => (input instanceof vscode.TabInputText ? [input.uri] : []))
    .filter((uri) => SCHEMES.has(uri.scheme) && !isSecret({ uri, languageId: '' }, settings))
    .map((uri) => fileRef(uri));
  return refs.filter((ref, i) => refs.findIndex(({ uri }) => uri === ref.uri) === i).slice(0, MAX_OFFERED);
}

export function toRange({ startLine, startCharacter, endLine, endCharacter }: TextRange): vscode.Range {
  return new vscode.Range(startLine, startCharacter, endLine, endCharacter);
}

/** Opens the item of a reference. */
export async function openRef(ref: ContextRef): Promise<void> {
  const uri = vscode.Uri.parse(ref.uri, true);
  if (ref.kind === 'folder') await vscode.commands.executeCommand('revealInExplorer', uri);
  else await vscode.window.showTextDocument(uri, ref.range ? { selection: toRange(ref.range) } : {});
}

/** For display, in one line, as is `baseName`. A file is known by its URI. */
const pathOf = (uri: vscode.Uri): string => oneLine(vscode.workspace.asRelativePath(uri));

function baseName(uri: vscode.Uri): string {
  return oneLine(uri.path.slice(uri.path.replace(/\/$/, '').lastIndexOf('/') + 1));
}
