/**
 * What commit messages need of git: the part of the built-in git extension's API (version 1) that they use, the choice
 * of the repository, and a diff split into its files.
 */
import { oneLine } from '../../engine/protocol/oneLine.ts';
import * as vscode from '../vscode.ts';

export interface Repository {
  readonly rootUri: vscode.Uri;
  readonly inputBox: { value: string };
  /** Unified diff; `cached` is the staged one. */
  diff(cached?: boolean): Promise<string>;
  log(options?: { maxEntries?: number }): Promise<{ message: string }[]>;
}

interface GitApi {
  readonly repositories: Repository[];
}

interface GitExtension {
  readonly enabled: boolean;
  getAPI(version: 1): GitApi;
}

/** The open repositories. Throws an Error for the user if git is disabled. */
export async function openRepositories(): Promise<Repository[]> {
  const extension = vscode.extensions.getExtension<GitExtension>('vscode.git');
  if (!extension) throw new Error(vscode.l10n.t('The built-in Git extension is switched off.'));
  const git = await extension.activate();
  if (!git.enabled) throw new Error(vscode.l10n.t('Git is switched off (setting git.enabled).'));
  return git.getAPI(1).repositories;
}

/** The repository whose menu was used, else the only one, else the user's choice. */
export async function chooseRepository(
  repositories: readonly Repository[],
  rootUri: vscode.Uri | undefined,
): Promise<Repository | undefined> {
  const meant = repositories.find((repository) => repository.rootUri.toString() === rootUri?.toString());
  if (meant || repositories.length <= 1) return meant ?? repositories[0];
  const items = repositories.map((repository) => ({
    label: oneLine(vscode.workspace.asRelativePath(repository.rootUri, true)),
    description: oneLine(repository.rootUri.path),
    repository,
  }));
  const picked = await vscode.window.showQuickPick(items, {
    placeHolder: vscode.l10n.t('Write a commit message for which repository?'),
  });
  return picked?.repository;
}

export interface DiffFile {
  /** Relative to the repository's root, after the change; for a deleted file, before it. */
  path: string;
  /** Every name of the file in the diff, including the one before a rename. */
  names: string[];
  text: string;
}

/** The files of a unified diff, in its order, including merges in progress ("diff --cc"). */
export function diffFiles(diff: string): DiffFile[] {
  return (
    diff
      // Splits at LF only: file content may hold other characters that JavaScript counts as line ends.
      .split(/(?<=^|\n)(?=diff --)/)
      .filter((text) => text.startsWith('diff --'))
      .map((text) => {
        const names = namesIn(text);
        return { path: names[0] ?? '', names, text };
      })
  );
}

function namesIn(text: string): string[] {
  // After the first hunk header, lines are content.
  const head = text.slice(0, text.search(/\n@@/) >>> 0);
  const lines = ['rename to', 'copy to', '\\+\\+\\+', '---', 'rename from', 'copy from'].map(
    (word) => new RegExp(`^${word} (.+?)\\t?$`, 'm').exec(head)?.[1],
  );
  const named = lines
    .filter((name) => name !== undefined && name !== '/dev/null')
    .map((name) => withoutPrefix(unquoted(name as string)));
  return [...new Set([...named, ...namesInHeader(head)])];
}

/** "diff --git a/x b/x", used if nothing else names the file (mode change, binary). Both names are equal then. */
function namesInHeader(head: string): string[] {
  const header = /^diff --(?:git|cc|combined) (.+)$/m.exec(head)?.[1] ?? '';
  const twice = /^(?:[a-z]\/)?(.+) (?:[a-z]\/)?\1$/.exec(header)?.[1] ?? /^("?[a-z]\/.+) \1$/.exec(header)?.[1];
  const second = / ("[a-z]\/.+")$/.exec(header)?.[1];
  return [twice ?? withoutPrefix(unquoted(second ?? header))];
}

/** Git writes the prefixes a/ and b/; with diff.mnemonicPrefix also i/, w/, c/ and o/; or none. */
function withoutPrefix(name: string): string {
  return name.replace(/^[abciwo]\//, '');
}

/** Git quotes names with unusual characters as C strings. */
function unquoted(name: string): string {
  if (!name.startsWith('"') || !name.endsWith('"')) return name;
  const bytes: number[] = [];
  const inner = name.slice(1, -1);
  for (let i = 0; i < inner.length; i++) {
    const octal = /^\\([0-7]{3})/.exec(inner.slice(i, i + 4))?.[1];
    if (octal !== undefined) bytes.push(Number.parseInt(octal, 8));
    else if (inner[i] === '\\') bytes.push({ n: 10, t: 9 }[inner[i + 1] ?? ''] ?? (inner[i + 1] ?? '\\').charCodeAt(0));
    else bytes.push(...new TextEncoder().encode(inner[i]));
    if (inner[i] === '\\') i += octal === undefined ? 1 : 3;
  }
  return new TextDecoder().decode(Uint8Array.from(bytes));
}
