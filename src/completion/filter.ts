/** Which documents get completions. */
import * as vscode from '../vscode.ts';
import type { Config } from '../config.ts';
import { isTooLarge } from '../client/documentSize.ts';
import { isWanted } from './languages.ts';
import { targetOf } from './links.ts';
import type { SilentReason } from './record.ts';

/**
 * Schemes of documents where people write code. Output panes, commit boxes, settings and chat inputs are documents,
 * too.
 */
const SCHEMES = new Set(['file', 'untitled', 'vscode-remote', 'vscode-vfs', 'vscode-notebook-cell']);

/** Notebook cells. Their path is the notebook's. */
const CELL = 'vscode-notebook-cell';

/** The schemes of files on the machine on which the extension runs. */
export const FILES = new Set(['file', 'vscode-remote']);

export const DOCUMENTS: vscode.DocumentSelector = [...SCHEMES].map((scheme) => ({ scheme }));

/** Why this document gets no completions, or undefined. */
export function excluded(document: vscode.TextDocument, settings: Config['completion']): SilentReason | undefined {
  if (!SCHEMES.has(document.uri.scheme)) return 'this kind of document gets no completions';
  if (isTooLarge(document)) return 'the file is too large';
  if (isSecret(document, settings)) return 'the file matches kvasir.completion.exclude';
  return isWanted(settings.languages, document.languageId, (glob) => globMatches(document, glob))
    ? undefined
    : 'the language is not in kvasir.completion.languages';
}

/**
 * Whether a file reaches the model only when the user asks about it by name. Checks its own path and the target of a
 * link.
 */
export function isSecret(document: Addressed, settings: Config['completion']): boolean {
  const { languageId } = document;
  const uri = fileOf(document.uri);
  if (isNamedSecret({ uri, languageId }, settings)) return true;
  const target = FILES.has(uri.scheme) || uri.scheme === CELL ? targetOf(uri) : undefined;
  return target !== undefined && isNamedSecret({ uri: target, languageId }, settings);
}

/** The URI of a cell's notebook, which may be a file in a workspace folder. For other documents, the URI itself. */
function fileOf(uri: vscode.Uri): vscode.Uri {
  if (uri.scheme !== CELL) return uri;
  return (
    vscode.workspace.notebookDocuments.find(
      (notebook) => notebook.uri.path === uri.path && notebook.uri.authority === uri.authority,
    )?.uri ?? uri
  );
}

function isNamedSecret(document: Addressed, { exclude, excludeIn }: Config['completion']): boolean {
  const own = excludeIn?.get(vscode.workspace.getWorkspaceFolder(document.uri)?.uri.toString() ?? '');
  return (own ?? exclude).some((glob) => globMatches(document, glob));
}

/** Whether computed state of a document may be kept on disk: only for files on disk that are not secret. */
export function mayBeKept(document: Addressed, settings: Config['completion']): boolean {
  return FILES.has(document.uri.scheme) && !isSecret(document, settings);
}

/**
 * Whether a glob of the settings matches. The editor compares globs with the whole path, where `secrets.json` or
 * `private/` would match nothing. Here a glob matches in any folder, and a folder matches all files in it.
 */
export function globMatches(document: Addressed, glob: string): boolean {
  const anywhere = glob.startsWith('**') ? glob : `**/${glob.replace(/^\.?\//, '')}`;
  const patterns = [glob, anywhere, `${anywhere.replace(/\/$/, '')}/**`];
  return patterns.some((pattern) => vscode.languages.match({ pattern }, document as vscode.TextDocument) > 0);
}

type Addressed = Pick<vscode.TextDocument, 'uri' | 'languageId'>;
