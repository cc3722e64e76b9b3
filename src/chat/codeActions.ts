/**
 * The light bulb's "Kvasir: Explain" and "Kvasir: Fix": for problems, with their message in the question, and for a
 * selection.
 */
import * as vscode from '../vscode.ts';

const MAX_MESSAGE = 300;

class ChatCodeActions implements vscode.CodeActionProvider {
  provideCodeActions(
    document: vscode.TextDocument,
    range: vscode.Range | vscode.Selection,
    { diagnostics, only }: vscode.CodeActionContext,
  ): vscode.CodeAction[] {
    const actions: vscode.CodeAction[] = [];
    const add = (title: string, command: string, kind: vscode.CodeActionKind, diagnostic?: vscode.Diagnostic) => {
      if (only && !only.contains(kind)) return;
      const action = new vscode.CodeAction(title, kind);
      const message =
        diagnostic &&
        `${diagnostic.message.replace(/\s+/g, ' ').slice(0, MAX_MESSAGE)} (${vscode.l10n.t('line {0}', diagnostic.range.start.line + 1)})`;
      action.command = {
        title,
        command,
        arguments: [document.uri, diagnostic?.range ?? range, ...(message ? [message] : [])],
      };
      if (diagnostic) action.diagnostics = [diagnostic];
      actions.push(action);
    };
    const [worst] = [...diagnostics].sort((a, b) => a.severity - b.severity);
    if (worst) {
      add(vscode.l10n.t('Kvasir: Fix'), 'kvasir.fix', vscode.CodeActionKind.QuickFix, worst);
      add(vscode.l10n.t('Kvasir: Explain'), 'kvasir.explain', vscode.CodeActionKind.QuickFix, worst);
    } else if (!range.isEmpty)
      add(vscode.l10n.t('Kvasir: Explain'), 'kvasir.explain', vscode.CodeActionKind.RefactorRewrite);
    return actions;
  }
}

/** Declares the kinds, so that the editor asks only when they are needed. */
export function registerChatCodeActions(documents: vscode.DocumentSelector): vscode.Disposable {
  return vscode.languages.registerCodeActionsProvider(documents, new ChatCodeActions(), {
    providedCodeActionKinds: [vscode.CodeActionKind.QuickFix, vscode.CodeActionKind.RefactorRewrite],
  });
}
