/**
 * HTML of the chat view: a skeleton that the page's script fills. Only the extension's own script and style may load.
 */
import { randomBytes } from 'node:crypto';
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import type { Strings } from './chatMessages.ts';

export function chatPage(webview: vscode.Webview, extensionUri: vscode.Uri): string {
  const nonce = randomBytes(16).toString('base64');
  const script = webview.asWebviewUri(vscode.Uri.joinPath(extensionUri, 'dist', 'webview', 'chat.js'));
  const style = webview.asWebviewUri(vscode.Uri.joinPath(extensionUri, 'media', 'chat.css'));
  return `<!DOCTYPE html>
<html lang="${attribute(speech().numbers.language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link nonce="${nonce}" rel="stylesheet" href="${attribute(style.toString())}">
<title>Kvasir</title>
</head>
<body data-strings="${attribute(JSON.stringify(strings()))}">
<script nonce="${nonce}" src="${attribute(script.toString())}"></script>
</body>
</html>`;
}

function attribute(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;');
}

function strings(): Strings {
  const t = vscode.l10n.t;
  return {
    ask: t('Ask Kvasir'),
    hint: t('Ask about your code: / for commands, @ for files'),
    send: t('Send'),
    stop: t('Stop'),
    copy: t('Copy'),
    copied: t('Copied'),
    copyAnswer: t('Copy the answer'),
    insert: t('Insert at cursor'),
    apply: t('Apply to the file, as a diff'),
    newFile: t('New file with this code'),
    attach: t('Attach {0}'),
    detach: t('Remove {0} from the question'),
    addContext: t('Add context'),
    noFile: t('No file is open'),
    you: t('You'),
    title: t('Ask about your code'),
    tagline: t('Everything runs on this machine. Nothing is sent anywhere.'),
    examples: t('Try'),
    answering: t('Kvasir is answering'),
    answered: t('Answer: {0}'),
    failed: t('The request failed: {0}'),
    showLog: t('Show Log'),
    restart: t('Restart'),
    retry: t('Try again'),
    regenerate: t('Answer again'),
    edit: t('Edit and ask again'),
    editing: t('Edit the question; everything after it will be removed'),
    cancel: t('Cancel'),
    chooseModel: t('Choose Model'),
    openSetting: t('Open Setting'),
    tryAnyway: t('Try anyway'),
    refused: t('{0} is too small for this: it cannot follow instructions, so it was not asked.'),
    files: t('Files and folders'),
    commands: t('Commands'),
    names: t('Names in the file'),
    nothingFound: t('No file matches'),
    found: t('{0} entries'),
    conversation: t('Conversation'),
    context: t('Attached to the question'),
    codeIn: t('Code, {0}'),
    code: t('Code'),
    slash: [
      { name: 'explain', description: t('What the selected code or the definition at the cursor does') },
      { name: 'fix', description: t('Find and fix a bug') },
      { name: 'tests', description: t('Write unit tests') },
      { name: 'doc', description: t('Write documentation') },
      { name: 'summarize', description: t('Summarize the file or the selection') },
      { name: 'outline', description: t('List what the file defines, without the model') },
      { name: 'where', description: t('Where a name is defined, without the model') },
      { name: 'signature', description: t('Parameters and declaration of a name, without the model') },
      { name: 'callers', description: t('Where a name is called, without the model') },
      { name: 'imports', description: t('What the file imports, without the model') },
    ],
  };
}
