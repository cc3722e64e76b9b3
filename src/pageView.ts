/**
 * Connects a webview view to its page: HTML, options, messages and visibility. The HTML is a skeleton that the page's
 * script fills. Knows nothing of what the page shows.
 */
import { randomBytes } from 'node:crypto';
import { speech } from './speech.ts';
import * as vscode from './vscode.ts';

export interface Page<Message> {
  title: string;
  /** Paths in the extension's folder. */
  script: string;
  styles: readonly string[];
  /** The page's texts in the user's language, which its script reads. */
  strings: object;
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
  const received = view.webview.onDidReceiveMessage((message: Message) => page.receive(message));
  const visibility = view.onDidChangeVisibility(() => page.shown(view.visible));
  view.onDidDispose(() => {
    received.dispose();
    visibility.dispose();
    page.closed();
  });
  view.webview.html = htmlOf(view.webview, extensionUri, page);
  page.shown(view.visible);
}

/** Only the extension's own script and styles may load. */
function htmlOf<Message>(
  webview: vscode.Webview,
  extensionUri: vscode.Uri,
  { title, script, styles, strings }: Page<Message>,
): string {
  const nonce = randomBytes(16).toString('base64');
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'`;
  const uri = (file: string) =>
    attribute(webview.asWebviewUri(vscode.Uri.joinPath(extensionUri, ...file.split('/'))).toString());
  const links = styles.map((file) => `<link nonce="${nonce}" rel="stylesheet" href="${uri(file)}">`);
  return `<!DOCTYPE html>
<html lang="${attribute(speech().numbers.language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
${links.join('\n')}
<title>${attribute(title)}</title>
</head>
<body data-strings="${attribute(JSON.stringify(strings))}">
<script nonce="${nonce}" src="${uri(script)}"></script>
</body>
</html>`;
}

function attribute(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;');
}
