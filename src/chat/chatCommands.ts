/**
 * The chat's commands and code actions: conversations, attachments, and questions about the selection, the definition
 * at the cursor or a problem. Does not draw the view.
 */
import * as vscode from '../vscode.ts';
import { knownLanguage } from '../format.ts';
import type { ChatView } from './chatView.ts';
import { fileRef, selectionRef } from './contextRefs.ts';
import { kindOf } from './fileFinder.ts';
import type { SavedConversation } from './conversation.ts';
import { titleOf, toMarkdown } from './exportChat.ts';
import type { SlashName } from '../../engine/protocol/slash.ts';
import { symbolAt } from './chatSymbols.ts';
import { withoutLinks } from '../client/failure.ts';

/** Registers them. Dispose the result. */
export function registerChatCommands(view: ChatView): vscode.Disposable[] {
  const { chat } = view;
  const undo = new UndoOffer();
  const command = (name: string, run: (...args: never[]) => unknown) => vscode.commands.registerCommand(name, run);
  const about = (name: SlashName) =>
    command(`kvasir.${name}`, (uri?: unknown, range?: unknown, message?: unknown) =>
      askAbout(view, name, uri, range, message),
    );
  return [
    command('kvasir.openChat', () => view.open()),
    command('kvasir.newChat', () => {
      chat.newChat();
      return view.open();
    }),
    command('kvasir.showConversations', () => showConversations(view, undo)),
    command('kvasir.exportChat', () => exportChat(chat.current.saved)),
    command('kvasir.clearChat', () =>
      undo.show(vscode.l10n.t('The conversation is deleted.'), chat.delete(chat.current.id)),
    ),
    command('kvasir.addToChat', (uri?: vscode.Uri, uris?: vscode.Uri[]) => addToChat(view, uri, uris)),
    about('explain'),
    about('fix'),
    about('tests'),
    about('doc'),
  ];
}

/**
 * From the palette or the editor's menu: about the selection or the definition at the cursor. From a code action: about
 * the given place and problem.
 */
async function askAbout(
  view: ChatView,
  name: SlashName,
  uri: unknown,
  range: unknown,
  message: unknown,
): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const document =
    range instanceof vscode.Range && uri instanceof vscode.Uri
      ? await vscode.workspace.openTextDocument(uri)
      : editor?.document;
  if (!document) {
    void vscode.window.showInformationMessage(vscode.l10n.t('Open a file to ask about.'));
    return;
  }
  const place = range instanceof vscode.Range ? range : (editor?.selection ?? new vscode.Range(0, 0, 0, 0));
  const refs = [fileRef(document.uri)];
  // The definition around a problem. The user's selection is kept.
  const symbol = typeof message === 'string' || place.isEmpty ? await symbolAt(document, place.start) : undefined;
  if (symbol) refs.push(selectionRef(document, symbol.range, symbol.name));
  else if (!place.isEmpty) refs.push(selectionRef(document, place));
  await view.ask([`/${name}`, ...(typeof message === 'string' ? [message] : [])].join(' '), refs);
}

/** From the explorer: files and folders. From an editor: its selection or its file. */
async function addToChat(view: ChatView, uri: vscode.Uri | undefined, uris: vscode.Uri[] | undefined): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const named = uris?.length ? uris : uri ? [uri] : editor ? [editor.document.uri] : [];
  if (!named.length) {
    void vscode.window.showInformationMessage(vscode.l10n.t('Open a file to add to the chat.'));
    return;
  }
  // Only the explorer passes the list of all selected entries.
  const fromEditor =
    !Array.isArray(uris) && editor && !editor.selection.isEmpty && editor.document.uri.toString() === String(named[0]);
  view.chat.context.add(
    fromEditor
      ? [selectionRef(editor.document, editor.selection)]
      : await Promise.all(named.map(async (each) => fileRef(each, await kindOf(each)))),
  );
  await view.open();
}

async function exportChat(conversation: SavedConversation): Promise<void> {
  if (!conversation.turns.length) {
    void vscode.window.showInformationMessage(vscode.l10n.t('This conversation is empty.'));
    return;
  }
  const content = toMarkdown(conversation, titleOf(conversation.turns), vscode.l10n.t('The request failed:'));
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: 'markdown', content }));
}

interface Item extends vscode.QuickPickItem {
  conversation?: SavedConversation;
}

/** Lists all conversations; each can be shown or deleted. */
async function showConversations(view: ChatView, undo: UndoOffer): Promise<void> {
  const pick = vscode.window.createQuickPick<Item>();
  const remove = { iconPath: new vscode.ThemeIcon('trash'), tooltip: vscode.l10n.t('Delete') };
  const fill = () => {
    const items: Item[] = view.chat.conversations.map((conversation) => ({
      label: titleOf(conversation.turns),
      description:
        dateOf(conversation.updatedAt) +
        (conversation.id === view.chat.current.id ? ` · ${vscode.l10n.t('shown now')}` : ''),
      buttons: [remove],
      conversation,
    }));
    pick.items = [
      { label: `$(add) ${vscode.l10n.t('New Conversation')}` },
      ...(items.length ? [{ label: '', kind: vscode.QuickPickItemKind.Separator }] : []),
      ...items,
    ];
  };
  pick.placeholder = vscode.l10n.t('Choose a conversation');
  pick.matchOnDescription = true;
  // Several may be deleted one after another.
  pick.keepScrollPosition = true;
  fill();
  let open = true;
  pick.onDidTriggerItemButton(({ item }) => {
    if (!item.conversation) return;
    const restore = view.chat.delete(item.conversation.id);
    fill();
    const putBack =
      restore &&
      (() => {
        restore();
        if (open) fill();
      });
    // The notification offers to undo each deletion.
    void undo.show(vscode.l10n.t('The conversation "{0}" is deleted.', item.label), putBack);
  });
  pick.onDidAccept(() => {
    const [item] = pick.selectedItems;
    if (item?.conversation) view.chat.show(item.conversation);
    else if (item) view.chat.newChat();
    pick.hide();
    void view.open();
  });
  pick.onDidHide(() => {
    open = false;
    pick.dispose();
  });
  pick.show();
}

function dateOf(time: number): string {
  const date = new Date(time);
  const today = date.toDateString() === new Date().toDateString();
  return today
    ? date.toLocaleTimeString(knownLanguage(vscode.env.language), { hour: '2-digit', minute: '2-digit' })
    : date.toLocaleDateString(knownLanguage(vscode.env.language), { day: 'numeric', month: 'short', year: 'numeric' });
}

/** The message after deleting a conversation, with its `Undo`. The caller passes how to restore the conversation. */
class UndoOffer {
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

/** Longest quoted message of a problem, in characters. */
const MAX_MESSAGE = 300;

/**
 * The light bulb's "Kvasir: Explain" and "Kvasir: Fix": for problems, with their message in the question, and for a
 * selection.
 */
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
        `${diagnostic.message.replace(/\s+/g, ' ').slice(0, MAX_MESSAGE)} ` +
          `(${vscode.l10n.t('line {0}', diagnostic.range.start.line + 1)})`;
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
