/** The chat page's texts in the user's language. */
import { FIRST_MODEL } from '../../engine/download/knownModels.ts';
import { downloadLabel } from '../models/downloadLines.ts';
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import type { Strings } from './chatMessages.ts';

export function chatStrings(): Strings {
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
    thinking: t('Thinking'),
    thought: t('Thought for {0} tokens'),
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
    downloadModel: downloadLabel(FIRST_MODEL, speech()),
    openSetting: t('Open Setting'),
    tryAnyway: t('Try anyway'),
    refused: t('{0} is too small for this: choose a larger model.'),
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
