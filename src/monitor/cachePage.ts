/**
 * HTML of the cache panel: a skeleton that the page's script fills. Only the extension's own script and styles may
 * load.
 */
import { randomBytes } from 'node:crypto';
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import { cacheStrings } from './cacheStrings.ts';

export function cachePage(webview: vscode.Webview, extensionUri: vscode.Uri): string {
  const nonce = randomBytes(16).toString('base64');
  const uri = (...parts: string[]) =>
    attribute(webview.asWebviewUri(vscode.Uri.joinPath(extensionUri, ...parts)).toString());
  return `<!DOCTYPE html>
<html lang="${attribute(speech().numbers.language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${uri('dist', 'webview', 'cache.css')}">
<link rel="stylesheet" href="${uri('media', 'cache.css')}">
<title>Kvasir: ${attribute(vscode.l10n.t('Cache'))}</title>
</head>
<body data-strings="${attribute(JSON.stringify(cacheStrings()))}">
<script nonce="${nonce}" src="${uri('dist', 'webview', 'cache.js')}"></script>
</body>
</html>`;
}

function attribute(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;');
}
