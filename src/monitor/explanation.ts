/** `Kvasir: Explain Last Completion` as a read-only document, which can be searched and copied. */
import * as vscode from '../vscode.ts';

const SCHEME = 'kvasir-explanation';
const PAGE = vscode.Uri.from({ scheme: SCHEME, path: '/Last Completion.md' });

export class Explanation implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly #registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  readonly #text: () => string;

  /** `text` builds the page when it is shown. */
  constructor(text: () => string) {
    this.#text = text;
  }

  get onDidChange(): vscode.Event<vscode.Uri> {
    return this.#changed.event;
  }

  provideTextDocumentContent(): string {
    return this.#text();
  }

  async show(): Promise<void> {
    this.#changed.fire(PAGE);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(PAGE), { preview: true });
  }

  dispose(): void {
    this.#registration.dispose();
    this.#changed.dispose();
  }
}
