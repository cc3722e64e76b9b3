/**
 * Collects the texts that a question is about: mirrored documents, and snippets for selections and for files that are
 * not open. Reports everything that is left out in a note.
 */
import { messageOf } from '../format.ts';
import * as vscode from '../vscode.ts';
import { openDocument } from '../context/openDocuments.ts';
import type { Snippet } from '../../engine/protocol/tasks.ts';
import type { Settings } from '../config.ts';
import { isTooLarge, tooLarge } from '../client/documentText.ts';
import type { ContextRef } from './chatMessages.ts';
import { refId, toRange } from './contextRefs.ts';
import { filesIn } from './fileFinder.ts';

/** Larger files are not read, because no model takes them whole. */
const MAX_BYTES = 1_000_000;
const MAX_FILES_OF_FOLDER = 24;

export interface Gathered {
  /** The first becomes the shared file block. */
  documents: vscode.TextDocument[];
  snippets: (Snippet & { symbol?: string })[];
  /** The attached item of each document, then of each snippet. */
  owners: string[];
  /** In the first document: the position around which a large file is shown. */
  cursor?: () => number;
  notes: string[];
}

export async function gather(
  refs: readonly ContextRef[],
  settings: Settings,
  editor: vscode.TextEditor | undefined,
): Promise<Gathered> {
  const documents: vscode.TextDocument[] = [];
  const snippets: Gathered['snippets'] = [];
  const owners = { documents: [] as string[], snippets: [] as string[] };
  const notes: string[] = [];
  const addSnippet = (ref: ContextRef, snippet: Gathered['snippets'][number]) => {
    snippets.push(snippet);
    owners.snippets.push(refId(ref));
  };
  for (const ref of refs) {
    const uri = vscode.Uri.parse(ref.uri, true);
    try {
      if (ref.kind === 'selection') addSnippet(ref, await selected(ref, uri));
      else if (ref.kind === 'folder') {
        const { texts, note } = await textsIn(uri, ref.path, settings);
        for (const snippet of texts) addSnippet(ref, snippet);
        if (note !== undefined) notes.push(note);
      } else {
        const document =
          openDocument(uri) ?? (documents.length === 0 ? await vscode.workspace.openTextDocument(uri) : undefined);
        if (document && isTooLarge(document)) throw new Error(tooLarge(document, vscode.l10n.t));
        if (document) {
          documents.push(document);
          owners.documents.push(refId(ref));
        } else addSnippet(ref, { path: uri.path, text: await textOf(uri) });
      }
    } catch (error) {
      notes.push(vscode.l10n.t('{0} is left out: {1}', ref.path, messageOf(error)));
    }
  }
  const first = documents[0];
  const place = refs.find((ref) => ref.kind === 'selection' && ref.uri === first?.uri.toString())?.range;
  const cursor = !first
    ? undefined
    : place
      ? () => first.offsetAt(toRange(place).start)
      : editor?.document === first
        ? () => first.offsetAt(editor.selection.active)
        : undefined;
  return {
    documents,
    snippets,
    owners: [...owners.documents, ...owners.snippets],
    notes,
    ...(cursor ? { cursor } : {}),
  };
}

/** The texts of a folder's files, and a note if there are others. */
async function textsIn(
  folder: vscode.Uri,
  path: string,
  settings: Settings,
): Promise<{ texts: Snippet[]; note: string | undefined }> {
  const { t } = vscode.l10n;
  const { taken, total, numSecret, more } = await filesIn(folder, settings, MAX_FILES_OF_FOLDER);
  const texts: Snippet[] = [];
  for (const file of taken) {
    // Files that cannot be read, such as pictures, are not counted.
    const text = await textOf(file).catch(() => undefined);
    if (text !== undefined) texts.push({ path: file.path, text });
  }
  let note: string | undefined;
  if (!total && numSecret && more)
    note = t(
      '{0}: no file is attached: kvasir.completion.exclude leaves out the first {1}, and the others were not checked',
      path,
      numSecret,
    );
  else if (!total && numSecret)
    note = t('{0}: no file is attached: kvasir.completion.exclude leaves all of them out', path);
  else if (more) note = t('{0}: {1} of more than {2} files are attached', path, texts.length, total);
  else if (texts.length < total) note = t('{0}: {1} of {2} files are attached', path, texts.length, total);
  return { texts, note };
}

async function selected(ref: ContextRef, uri: vscode.Uri): Promise<Gathered['snippets'][number]> {
  const document = openDocument(uri) ?? (await vscode.workspace.openTextDocument(uri));
  const range = ref.range ? document.validateRange(toRange(ref.range)) : new vscode.Range(0, 0, 0, 0);
  return {
    path: uri.path,
    text: document.getText(range),
    startLine: range.start.line,
    ...(ref.symbol === undefined ? {} : { symbol: ref.symbol }),
  };
}

/** The text of a file that is not open. Throws an Error for the user. */
async function textOf(uri: vscode.Uri): Promise<string> {
  const open = openDocument(uri);
  if (open) return open.getText();
  const { size } = await vscode.workspace.fs.stat(uri);
  if (size > MAX_BYTES) throw new Error(vscode.l10n.t('it is larger than {0} MB', MAX_BYTES / 1e6));
  const text = new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  if (text.includes('\0')) throw new Error(vscode.l10n.t('it is not a text file'));
  return text;
}
