/** Which documents are completed. */
import * as vscode from '../vscode.ts';
import type { Config } from '../config.ts';
import { isTooLarge } from '../client/documentSize.ts';
import { isWanted } from './languages.ts';
import { targetOf } from './links.ts';
import type { SilentReason } from './record.ts';

/** Where people write code. Output panes, commit boxes, settings and chat inputs are documents, too. */
const SCHEMES = new Set(['file', 'untitled', 'vscode-remote', 'vscode-vfs', 'vscode-notebook-cell']);

/** Of a notebook's cells: their path is the notebook's. */
const CELL = 'vscode-notebook-cell';

/** Of them those that are files of the machine on which the extension runs. */
export const FILES = new Set(['file', 'vscode-remote']);

export const DOCUMENTS: vscode.DocumentSelector = [...SCHEMES].map((scheme) => ({ scheme }));

/** Why this document is not completed, or undefined. */
export function excluded(document: vscode.TextDocument, settings: Config['completion']): SilentReason | undefined {
  if (!SCHEMES.has(document.uri.scheme)) return 'not a document that is completed (scheme)';
  if (isTooLarge(document)) return 'the file is too large';
  if (isSecret(document, settings)) return 'the file matches kvasir.completion.exclude';
  return isWanted(settings.languages, document.languageId, (glob) => globMatches(document, glob))
    ? undefined
    : 'the language is not in kvasir.completion.languages';
}

/**
 * Files that reach the model only when the user asks about them by name: by their own, or by that of what a link leads to. Takes
 * whatever has the address and the language of a document.
 */
export function isSecret(document: Addressed, settings: Config['completion']): boolean {
  const { languageId } = document;
  const uri = fileOf(document.uri);
  if (isNamedSecret({ uri, languageId }, settings)) return true;
  const target = FILES.has(uri.scheme) || uri.scheme === CELL ? targetOf(uri) : undefined;
  return target !== undefined && isNamedSecret({ uri: target, languageId }, settings);
}

/** The address of a cell's notebook, which is what lies in a workspace folder, and is a file or none; otherwise the address itself. */
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

/** Whether what is computed of a document may be kept on the disk: only of files, which are on one themselves, and not of secret ones. */
export function mayBeKept(document: Addressed, settings: Config['completion']): boolean {
  return FILES.has(document.uri.scheme) && !isSecret(document, settings);
}

/**
 * Whether a glob of the settings fits. The editor holds it against the whole path, where `secrets.json` or `private/` would
 * fit nothing: it is meant in any folder, and a folder for all that is in it.
 */
export function globMatches(document: Addressed, glob: string): boolean {
  const anywhere = glob.startsWith('**') ? glob : `**/${glob.replace(/^\.?\//, '')}`;
  const patterns = [glob, anywhere, `${anywhere.replace(/\/$/, '')}/**`];
  return patterns.some((pattern) => vscode.languages.match({ pattern }, document as vscode.TextDocument) > 0);
}

type Addressed = Pick<vscode.TextDocument, 'uri' | 'languageId'>;
