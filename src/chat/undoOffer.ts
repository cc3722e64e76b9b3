/**
 * The message after deleting a conversation, with its `Undo`. Does not know conversations: the caller passes how to
 * restore one.
 */
import * as vscode from '../vscode.ts';
import { withoutLinks } from '../client/engineHost.ts';

export class UndoOffer {
  /** Restore functions, by message. The editor shows equal messages as one. */
  readonly #offered = new Map<string, (() => void)[]>();

  /** Shows `message`, which may contain the user's words. `restore` is undefined if nothing was lost. */
  async show(message: string, restore: (() => void) | undefined): Promise<void> {
    if (!restore) return;
    const undo = vscode.l10n.t('Undo');
    const restores = [...(this.#offered.get(message) ?? []), restore];
    this.#offered.set(message, restores);
    const chosen = await vscode.window.showInformationMessage(withoutLinks(message), undo);
    if (chosen === undo) for (const each of restores) each();
    // An equal message that has replaced it stands for both.
    if (this.#offered.get(message) === restores) this.#offered.delete(message);
  }
}
