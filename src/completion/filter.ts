/**
 * Which documents get completions, by their scheme, size, globs and language, and the command that changes the list of
 * languages.
 */
import * as vscode from '../vscode.ts';
import type { Config, Settings } from '../config.ts';
import { isTooLarge } from '../client/documentText.ts';
import { targetOf } from './links.ts';
import type { SilentReason } from './record.ts';

/**
 * Schemes of documents where people write code. Output panes, commit boxes, settings and chat inputs are documents,
 * too.
 */
export const SCHEMES = new Set(['file', 'untitled', 'vscode-remote', 'vscode-vfs', 'vscode-notebook-cell']);

/** Notebook cells. Their path is the notebook's. */
const CELL = 'vscode-notebook-cell';

/** The schemes of files on the machine on which the extension runs. */
export const FILES = new Set(['file', 'vscode-remote']);

export const DOCUMENTS: vscode.DocumentSelector = [...SCHEMES].map((scheme) => ({ scheme }));

/** The parts of a document that the globs of the settings are compared with. */
type Addressed = Pick<vscode.TextDocument, 'uri' | 'languageId'>;

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

/** Whether a glob of the list matches the document. */
type Matches = (glob: string) => boolean;

/**
 * Whether `kvasir.completion.languages` allows a language. The last matching entry decides: `*`, a language id or a
 * glob, each with `!` for "not here". A list that starts with `!` allows everything else.
 */
export function isWanted(languages: readonly string[], languageId: string, matches: Matches): boolean {
  let wanted = languages[0]?.startsWith('!') ?? false;
  for (const entry of languages) {
    const name = entry.replace(/^!/, '');
    if (name === '*' || name === languageId || (/[*?./[{]/.test(name) && matches(name)))
      wanted = !entry.startsWith('!');
  }
  return wanted;
}

/** The list `kvasir.completion.languages` with this language toggled, without duplicates. */
export function toggled(languages: readonly string[], languageId: string, matches: Matches): string[] {
  const wanted = !isWanted(languages, languageId, matches);
  const spelledOut = languages[0]?.startsWith('!') ? ['*', ...languages] : languages;
  const others = spelledOut.filter((entry) => entry !== languageId && entry !== `!${languageId}`);
  // A leading `!` entry would mean "everywhere else".
  while (others[0]?.startsWith('!')) others.shift();
  return isWanted(others, languageId, matches) === wanted
    ? others
    : [...others, wanted ? languageId : `!${languageId}`];
}

/**
 * `Kvasir: Turn Completions On or Off for This Language`: changes `kvasir.completion.languages` in the scope where it
 * is set.
 */
export async function toggleLanguage(settings: Settings): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (!document) return;
  const { languageId } = document;
  const matches = (glob: string) => globMatches(document, glob);
  const languages = toggled(settings.current.completion.languages, languageId, matches);
  const section = vscode.workspace.getConfiguration('kvasir');
  const at = section.inspect('completion.languages');
  const target =
    at?.workspaceFolderValue !== undefined || at?.workspaceValue !== undefined
      ? vscode.ConfigurationTarget.Workspace
      : vscode.ConfigurationTarget.Global;
  await section.update('completion.languages', languages, target);
  const message = isWanted(languages, languageId, matches)
    ? vscode.l10n.t('Kvasir: completions are on for {0}.', languageId)
    : vscode.l10n.t('Kvasir: completions are off for {0}.', languageId);
  void vscode.window.showInformationMessage(message);
}
