/**
 * Which other files a completion may copy from: of the same language, open ones before those that nobody has open, of either those
 * nearest in the folders first. Files that the user has excluded are never among them. Nothing is sent for a model that does not copy.
 */
import type * as vscode from '../vscode.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import { lengthOf } from '../client/documentSize.ts';
import type { EngineClient } from '../client/engineClient.ts';
import { excluded } from '../completion/filter.ts';
import type { Settings } from '../config.ts';
import { numSharedFolders } from './folders.ts';
import { openDocuments } from './openDocuments.ts';
import type { ProjectFiles } from './projectFiles.ts';

/** Their tokens are looked through for each one that is written. */
const MOST_FILES = 5;
/** In characters; longer ones are data, and a part of each is all that is copied from. */
const LONGEST = 200_000;
/** Languages that import one another's files. */
const SCRIPTS = new Set(['typescript', 'typescriptreact', 'javascript', 'javascriptreact']);

/** Ids of documents and sources that the engine has now, the likeliest to be copied from first. */
export function otherFiles(
  document: vscode.TextDocument,
  client: Pick<EngineClient, 'state'>,
  mirror: Pick<DocumentMirror, 'sync'>,
  project: Pick<ProjectFiles, 'near'>,
  settings: Settings,
): string[] {
  const { completion } = settings.current;
  if (!completion.snippets || client.state.kind !== 'ready' || !client.state.model.copiesFiles) return [];
  const found: string[] = [];
  const open = openDocuments();
  const candidates = open.filter(
    (other) =>
      other !== document && other.lineCount > 1 && lengthOf(other) <= LONGEST && familyOf(other) === familyOf(document),
  );
  for (const { other } of candidates
    .map((other) => ({ other, shared: numSharedFolders(other.uri, document.uri) }))
    .sort((a, b) => b.shared - a.shared)) {
    if (!excluded(other, completion)) found.push(mirror.sync(other));
    if (found.length === MOST_FILES) break;
  }
  return [...found, ...project.near(document, new Set(open.map(({ uri }) => uri.toString())))];
}

function familyOf({ languageId }: vscode.TextDocument): string {
  return SCRIPTS.has(languageId) ? 'script' : languageId;
}
