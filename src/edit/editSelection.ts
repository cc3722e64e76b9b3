/**
 * `Kvasir: Edit Selection`: from the instruction to a streaming diff. Does not accept the edit: editPreview.ts does.
 */
import { answerTokens } from '../../engine/protocol/tasks.ts';
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import { DOCUMENTS } from '../completion/filter.ts';
import type { Done } from '../client/connection.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { failureOf } from '../client/failure.ts';
import { followsInstructions } from './ability.ts';
import type { EditPreview } from './editPreview.ts';
import type { PendingEdit } from './pendingEdit.ts';
import { askInstruction, type Target, targetOf } from './editRequest.ts';

export class EditSelection {
  readonly #memory: vscode.Memento;
  readonly #host: EngineHost;
  readonly #mirror: DocumentMirror;
  readonly #preview: EditPreview;

  constructor(memory: vscode.Memento, host: EngineHost, mirror: DocumentMirror, preview: EditPreview) {
    this.#memory = memory;
    this.#host = host;
    this.#mirror = mirror;
    this.#preview = preview;
  }

  async run(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (!editor || vscode.languages.match(DOCUMENTS, editor.document) === 0) {
      void vscode.window.showInformationMessage(vscode.l10n.t('Open a file to edit.'));
      return;
    }
    if (
      !(await followsInstructions(this.#host, (name) =>
        vscode.l10n.t('{0} is too small to change code by instruction. Choose a larger model for that.', name),
      ))
    )
      return;
    const { version } = editor.document;
    const target = await targetOf(editor);
    const instruction = await askInstruction(this.#memory, target.name);
    if (instruction === undefined) return;
    if (editor.document.version !== version) {
      void vscode.window.showWarningMessage(vscode.l10n.t('Kvasir: the file changed. Select the text again.'));
      return;
    }
    await this.#edit(editor.document, target, instruction);
  }

  async #edit(document: vscode.TextDocument, target: Target, instruction: string): Promise<void> {
    const original = document.getText(target.range);
    const tell = failureOf(this.#host);
    const edit = await this.#preview.show({ document, range: target.range, title: instruction });
    try {
      const done = await vscode.window.withProgress(
        {
          location: vscode.ProgressLocation.Notification,
          title: vscode.l10n.t('Kvasir is writing {0}', target.name),
          cancellable: true,
        },
        (_, token) => {
          token.onCancellationRequested(() => edit.cancel());
          return this.#generate(document, edit, instruction);
        },
      );
      if (edit.signal.aborted) return await this.#drop(edit);
      const problem = problemOf(done, original);
      if (problem !== undefined) {
        await this.#drop(edit);
        void vscode.window.showInformationMessage(`Kvasir: ${problem}`);
        return;
      }
      edit.finish(done.text);
      const notes = notesOf(done);
      if (notes.length) void vscode.window.showWarningMessage(`Kvasir: ${notes.join('; ')}`);
    } catch (error) {
      await this.#drop(edit);
      tell(error);
    }
  }

  #generate(document: vscode.TextDocument, edit: PendingEdit, instruction: string): Promise<Done> {
    return this.#host.client.generate({
      task: () => {
        // Loading the model may have taken a while, so the range is located again.
        const range = edit.locate(document, vscode.l10n.t('The text changed before it was edited. Select it again.'));
        return { kind: 'edit', docId: this.#mirror.sync(document), range, instruction };
      },
      priority: 'chat',
      onChunk: (text) => edit.write(text),
      signal: edit.signal,
    });
  }

  /** Unless another edit has replaced it. */
  async #drop(edit: PendingEdit): Promise<void> {
    if (this.#preview.pending === edit) await this.#preview.reject();
  }
}

/** Why there is nothing to accept, if so. */
function problemOf(done: Done, original: string): string | undefined {
  if (done.text === '') return done.diagnostics.join('; ') || vscode.l10n.t('the model gave no code');
  return done.text.replaceAll('\r', '') === original.replaceAll('\r', '')
    ? vscode.l10n.t('the model would change nothing.')
    : undefined;
}

function notesOf(done: Done): string[] {
  return done.finishReason === 'length' && answerTokens(done.usage) > 0
    ? [
        vscode.l10n.t(
          'the new text is cut off after {0} tokens: check its end',
          speech().numbers.count(answerTokens(done.usage)),
        ),
        ...done.diagnostics,
      ]
    : done.diagnostics;
}
