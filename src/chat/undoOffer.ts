/** The message after a conversation has been deleted, and its `Undo`. Knows no conversation: what puts one back is given. */
import * as vscode from '../vscode.ts';
import { withoutLinks } from '../client/engineHost.ts';

export class UndoOffer {
  /** What puts back what was deleted, by the message that offers it. The editor shows equal messages as one. */
  readonly #offered = new Map<string, (() => void)[]>();

  /** Says `message`, which may have a user's words in it; `restore` is undefined where nothing was lost. */
  async show(message: string, restore: (() => void) | undefined): Promise<void> {
    if (!restore) return;
    const undo = vscode.l10n.t('Undo');
    const restores = [...(this.#offered.get(message) ?? []), restore];
    this.#offered.set(message, restores);
    const chosen = await vscode.window.showInformationMessage(withoutLinks(message), undo);
    if (chosen === undo) for (const each of restores) each();
    // An equal message that has taken its place stands for both.
    if (this.#offered.get(message) === restores) this.#offered.delete(message);
  }
}
