/** Connects a webview view to its page: options, messages and visibility. Knows nothing of what the page shows. */
import * as vscode from './vscode.ts';

export interface Page<Message> {
  html: string;
  receive(message: Message): void;
  /** The page is visible or not; a hidden page is discarded and sends `ready` when it is back. */
  shown(visible: boolean): void;
  /** The view is gone. */
  closed(): void;
}

export function attachPage<Message>(view: vscode.WebviewView, extensionUri: vscode.Uri, page: Page<Message>): void {
  view.webview.options = {
    enableScripts: true,
    localResourceRoots: ['dist', 'media'].map((folder) => vscode.Uri.joinPath(extensionUri, folder)),
  };
  const { html, receive, shown, closed } = page;
  const received = view.webview.onDidReceiveMessage((message: Message) => receive(message));
  const visibility = view.onDidChangeVisibility(() => shown(view.visible));
  view.onDidDispose(() => {
    received.dispose();
    visibility.dispose();
    closed();
  });
  view.webview.html = html;
  shown(view.visible);
}
