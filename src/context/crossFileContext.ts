/**
 * What a completion is offered from other files: snippets for the model to read, sources to copy from, the packages of
 * the project, and the names of its files. Never the text of excluded files; sends nothing to a model that does not use
 * it.
 */
import type * as vscode from '../vscode.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import { lengthOf } from '../client/documentText.ts';
import type { EngineClient } from '../client/engineClient.ts';
import { excluded } from '../completion/filter.ts';
import type { Settings } from '../config.ts';
import { numSharedFolders, type ProjectFiles } from './projectFiles.ts';
import { openDocuments } from './openDocuments.ts';
import type { Folders } from './folders.ts';
import type { Packages } from './packages.ts';
import type { CrossFileContext } from '../completion/completionRequests.ts';
import type { SnippetSource } from './snippetSource.ts';

/** The engine searches the tokens of all of them for each written token. */
const MAX_FILES = 5;
/** In characters. Longer files are data. Of each file only the beginning is copied from. */
const MAX_CHARACTERS = 200_000;
/** Groups of languages that import each other's files. */
const SCRIPTS = new Set(['typescript', 'typescriptreact', 'javascript', 'javascriptreact']);

/** Languages in which an import names the path of a file. */
const BY_PATH = new Set(['script', 'python', 'vue', 'svelte', 'astro', 'ruby', 'rust']);

/** The words of imports, and places where one may begin: names of files are many, and for these lines alone. */
const IMPORT = /\b(?:import|export|from|require\w*|pub|mod|vi|jest)\b/;
const MAY_BEGIN = /^(?:\}\s*)?\w*$|^\s*(?:const|let|var)\b[^=]*$|[=(>:[]\s*(?:await\s+)?\w*$/;

export interface OtherFiles {
  snippets: Pick<SnippetSource, 'gather'>;
  project: Pick<ProjectFiles, 'near'>;
  packages: Pick<Packages, 'of'>;
  folders: Pick<Folders, 'of'>;
}

export function crossFileContext(
  { snippets, project, packages, folders }: OtherFiles,
  client: Pick<EngineClient, 'state'>,
  mirror: Pick<DocumentMirror, 'sync'>,
  settings: Settings,
): CrossFileContext {
  return (document, offset) => {
    const pieces = snippets.gather(document, offset);
    const sources = copySources(document, client, mirror, project, settings);
    const family = familyOf(document);
    const names = copies(client) && (family === 'script' || family === 'python') ? packages.of(document) : undefined;
    const before = lineBefore(document, offset);
    const mayImport = BY_PATH.has(family) && (IMPORT.test(before) || MAY_BEGIN.test(before));
    const known = copies(client) && mayImport ? folders.of(document, before) : {};
    return {
      ...(pieces.length ? { snippets: pieces } : {}),
      ...(sources.length ? { copySources: sources } : {}),
      ...(names ? { packages: [...names] } : {}),
      ...(known && Object.keys(known).length > 0 ? { folders: known } : {}),
    };
  };
}

function lineBefore(document: vscode.TextDocument, offset: number): string {
  const { line, character } = document.positionAt(offset);
  return document.lineAt(line).text.slice(0, character);
}

/**
 * Ids of documents and sources that the engine has now, the most promising first: files of the same language, open ones
 * first, then by distance in the folder tree.
 */
export function copySources(
  document: vscode.TextDocument,
  client: Pick<EngineClient, 'state'>,
  mirror: Pick<DocumentMirror, 'sync'>,
  project: Pick<ProjectFiles, 'near'>,
  settings: Settings,
): string[] {
  const { completion } = settings.current;
  if (!completion.snippets || !copies(client)) return [];
  const found: string[] = [];
  const open = openDocuments();
  const candidates = open.filter(
    (other) =>
      other !== document &&
      other.lineCount > 1 &&
      lengthOf(other) <= MAX_CHARACTERS &&
      familyOf(other) === familyOf(document),
  );
  for (const { other } of candidates
    .map((other) => ({ other, shared: numSharedFolders(other.uri, document.uri) }))
    .sort((a, b) => b.shared - a.shared)) {
    if (!excluded(other, completion)) found.push(mirror.sync(other));
    if (found.length === MAX_FILES) break;
  }
  return [...found, ...project.near(document, new Set(open.map(({ uri }) => uri.toString())))];
}

const copies = ({ state }: Pick<EngineClient, 'state'>): boolean => state.kind === 'ready' && state.model.copiesFiles;

function familyOf({ languageId }: vscode.TextDocument): string {
  return SCRIPTS.has(languageId) ? 'script' : languageId;
}
