/**
 * `Kvasir: Turn Completions On or Off for This Language`: changes `kvasir.completion.languages` in the scope where it
 * is set.
 */
import * as vscode from '../vscode.ts';
import type { Settings } from '../config.ts';
import { globMatches } from './filter.ts';
import { isWanted, toggled } from './languages.ts';

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
