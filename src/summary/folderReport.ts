/** A folder's summary as a Markdown document, and the provider of these read-only documents. */
import { posix } from 'node:path';
import { oneLine } from '../../engine/protocol/oneLine.ts';
import * as vscode from '../vscode.ts';
import type { FolderResult } from './folderSummary.ts';

const SCHEME = 'kvasir-summary';
/** Older reports are forgotten. */
const MAX_REPORTS = 10;

export class FolderReports implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #registration: vscode.Disposable;
  readonly #reports = new Map<string, string>();
  #numShown = 0;

  constructor() {
    this.#registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return (
      this.#reports.get(uri.toString()) ??
      vscode.l10n.t('This summary is from an earlier session. Run Kvasir: Summarize Folder again.')
    );
  }

  /** Opens the rendered document in place of the last one. */
  async show(folder: vscode.Uri, name: string, markdown: string): Promise<void> {
    // A new URI each time: a preview in the background does not follow changes of its document.
    const uri = vscode.Uri.from({
      scheme: SCHEME,
      query: String(++this.#numShown),
      path: `${folder.path.replace(/\/$/, '')}/${vscode.l10n.t('Summary of {0}', name.replaceAll('/', ' ∕ '))}.md`,
    });
    this.#reports.set(uri.toString(), markdown);
    for (const oldest of this.#reports.keys()) if (this.#reports.size > MAX_REPORTS) this.#reports.delete(oldest);
    try {
      await vscode.commands.executeCommand('markdown.showPreview', uri);
    } catch {
      // The built-in Markdown extension may be disabled.
      await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: false });
    }
  }

  dispose(): void {
    this.#registration.dispose();
  }
}

/**
 * A link that the Markdown preview follows. It accepts no URI with a scheme, and a leading slash means the first folder
 * of the workspace.
 */
export function linkTo(uri: vscode.Uri): string {
  const root = vscode.workspace.workspaceFolders?.[0]?.uri.path ?? '/';
  return `/${posix.relative(root, uri.path).split('/').map(encodeURIComponent).join('/')}`;
}

/** `link` is the target of a file's name. */
export function reportOf(
  name: string,
  result: FolderResult,
  notes: readonly string[],
  link: (path: string) => string,
): string {
  const t = vscode.l10n.t;
  const files = result.files.map(
    ({ path, summary, notes: known }) =>
      `- [${line(path)}](<${link(path)}>): ${plain(summary.replace(/\s+/g, ' ').trim())}` +
      (known.length ? ` *(${line(known.join('; '))})*` : ''),
  );
  const skipped = result.skipped.map(
    ({ path, reason }) => `- [${line(path)}](<${link(path)}>): ${line(reason || t('the model gave no summary'))}`,
  );
  const parts = [`# ${line(t('Summary of {0}', name))}`];
  if (result.overview)
    parts.push(
      result.overview
        .split(/\n{2,}/)
        .map(plain)
        .join('\n\n'),
    );
  if (notes.length) parts.push(notes.map((note) => `> ${line(note)}`).join('\n>\n'));
  if (files.length) parts.push(`## ${t('Files')}`, files.join('\n'));
  if (skipped.length) parts.push(`## ${t('Left out')}`, skipped.join('\n'));
  return `${parts.join('\n\n')}\n`;
}

/** A path or a message, as one line of Markdown. */
const line = (text: string): string => plain(oneLine(text));

/**
 * Escapes text for Markdown: neither files nor models may add links, pictures or markup. Code in backticks stays code.
 */
function plain(text: string): string {
  return text
    .split(/(`[^`\n]+`)/)
    .map((part, i) => (i % 2 ? part : part.replace(/[\\`*_{}[\]()#+.!<>|~&$^=:-]/g, '\\$&')))
    .join('');
}
