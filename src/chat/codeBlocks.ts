/**
 * Actions on a code block of an answer: insert it, propose it as an edit of the open file, or make a new file of it.
 */
import * as vscode from '../vscode.ts';
import type { EditPreview } from '../edit/editPreview.ts';
import { placeBlock } from './applyBlock.ts';
import type { CodeAction } from './chatMessages.ts';
import { type NamedRange, symbolsOf } from './chatSymbols.ts';

/** Language names used by models whose editor id differs. */
const LANGUAGE_IDS: Record<string, string> = {
  ts: 'typescript',
  js: 'javascript',
  tsx: 'typescriptreact',
  jsx: 'javascriptreact',
  py: 'python',
  rs: 'rust',
  sh: 'shellscript',
  bash: 'shellscript',
  zsh: 'shellscript',
  md: 'markdown',
  yml: 'yaml',
  rb: 'ruby',
  kt: 'kotlin',
  cs: 'csharp',
  'c++': 'cpp',
  golang: 'go',
  text: 'plaintext',
  txt: 'plaintext',
};

export class CodeBlocks {
  readonly #preview: Pick<EditPreview, 'show'>;

  constructor(preview: Pick<EditPreview, 'show'>) {
    this.#preview = preview;
  }

  /** `editor` is the one that the conversation is about. */
  async run(action: CodeAction, text: string, language: string, editor: vscode.TextEditor | undefined): Promise<void> {
    if (action === 'newFile') return newFile(text, language);
    if (!editor || editor.document.isClosed) {
      void vscode.window.showInformationMessage(vscode.l10n.t('Open the file that the code belongs in.'));
      return;
    }
    await (action === 'insert' ? insert(text, editor) : this.#apply(text, editor));
  }

  async #apply(text: string, editor: vscode.TextEditor): Promise<void> {
    const { document } = editor;
    let symbols: NamedRange[] = [];
    for (let version = -1; version !== document.version && editor.selection.isEmpty; ) {
      // If the file was edited while its definitions were looked up, their positions are outdated.
      ({ version } = document);
      symbols = await symbolsOf(document);
    }
    const { selection } = editor;
    const offsets = (range: vscode.Range) => ({
      start: document.offsetAt(range.start),
      end: document.offsetAt(range.end),
    });
    const place = placeBlock(document.getText(), text, {
      selection: offsets(selection),
      symbols: symbols.map(({ name, range }) => ({ name, ...offsets(range) })),
    });
    await this.#preview.show({
      document,
      range: new vscode.Range(document.positionAt(place.start), document.positionAt(place.end)),
      title: vscode.l10n.t('code of the chat'),
      text: place.text,
    });
  }
}

async function insert(text: string, editor: vscode.TextEditor): Promise<void> {
  const shown = await vscode.window.showTextDocument(editor.document, {
    viewColumn: editor.viewColumn ?? vscode.ViewColumn.Active,
    selection: editor.selection,
  });
  const selections = editor.selections.length > 1 ? editor.selections : shown.selections;
  const done = await shown.edit((edit) => {
    for (const selection of selections) edit.replace(selection, text.replace(/\n$/, ''));
  });
  if (!done)
    void vscode.window.showWarningMessage(
      vscode.l10n.t('Kvasir: the editor refused the edit. The file may be read-only.'),
    );
}

async function newFile(content: string, language: string): Promise<void> {
  const id = LANGUAGE_IDS[language.toLowerCase()] ?? language.toLowerCase();
  const known = id && (await vscode.languages.getLanguages()).includes(id);
  await vscode.window.showTextDocument(
    await vscode.workspace.openTextDocument({ content, ...(known ? { language: id } : {}) }),
  );
}
