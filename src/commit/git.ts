/**
 * The part of the built-in git extension's API (version 1) that commit messages use, and the choice of the repository.
 */
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
    label: vscode.workspace.asRelativePath(repository.rootUri, true),
    description: repository.rootUri.path,
    repository,
  }));
  const picked = await vscode.window.showQuickPick(items, {
    placeHolder: vscode.l10n.t('Write a commit message for which repository?'),
  });
  return picked?.repository;
}
