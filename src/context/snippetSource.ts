/**
 * Snippets of other places for a completion: recently edited regions, declarations of imported files, and the most
 * similar lines of other open editors. At most four, within a few milliseconds. Never reads excluded files, and does
 * nothing for a model that does not read snippets.
 */
import * as vscode from '../vscode.ts';
import type { Snippet } from '../../engine/protocol/tasks.ts';
import { excluded } from '../completion/filter.ts';
import type { Settings } from '../config.ts';
import { lengthOf } from '../client/documentText.ts';
import type { EngineClient } from '../client/engineClient.ts';
import { declarations, importedNames, importName } from './imports.ts';
import { openDocuments } from './openDocuments.ts';
import { RecentEdits, type Region } from './recentEdits.ts';
import { WINDOW_LINES, Windows, wordsOf } from './similarity.ts';

const MAX_SNIPPETS = 4;
const MAX_EDITS = 2;
const MAX_IMPORTS = 1;
/** Lines around an edit. */
const MARGIN_LINES = 5;
/** While the cursor stays within this many lines, the snippets stay the same. */
const STABLE_LINES = 16;
/** Time budget in the extension host for one completion. */
export const BUDGET_MS = 8;
/** In characters. Larger files are data. */
const MAX_FILE_CHARACTERS = 1_000_000;

export class SnippetSource implements vscode.Disposable {
  readonly #client: Pick<EngineClient, 'state'>;
  readonly #settings: Settings;
  readonly #edits = new RecentEdits();
  /** By version. */
  readonly #windows = new WeakMap<vscode.TextDocument, { version: number; windows: Windows }>();
  #subscriptions: vscode.Disposable[] = [];
  #last:
    | {
        key: string;
        version: number;
        offset: number /** Whether gathering was complete. */;
        complete: boolean;
        snippets: Snippet[];
      }
    | undefined;

  constructor(client: Pick<EngineClient, 'state'>, settings: Settings) {
    this.#client = client;
    this.#settings = settings;
  }

  /**
   * Snippets for a completion at `offset`, the most useful first. They stay the same while the user types in one place,
   * so that prompts share a prefix.
   */
  gather(document: vscode.TextDocument, offset: number): Snippet[] {
    const { state } = this.#client;
    const wanted = this.#settings.current.completion.snippets && state.kind === 'ready' && state.model.readsSnippets;
    this.#follow(wanted);
    if (!wanted) return [];
    const end = performance.now() + BUDGET_MS;
    const outOfTime = () => performance.now() > end;
    const line = document.positionAt(offset).line;
    const others = openDocuments().filter(
      (other) => other !== document && other.lineCount > 1 && !excluded(other, this.#settings.current.completion),
    );
    const key = [document, ...others]
      .map(
        (each) =>
          each.uri.toString() + (each === document ? `#${Math.floor(line / STABLE_LINES)}` : `@${each.version}`),
      )
      .join(' ');
    const last = this.#last;
    if (last?.key === key && (last.complete || (last.version === document.version && last.offset === offset)))
      return last.snippets;
    const snippets = this.#edited(document, line, others);
    const imported = importedNames(document.getText(new vscode.Range(0, 0, 100, 0)));
    for (const other of others.filter(({ uri }) => imported.has(importName(uri.path))).slice(0, MAX_IMPORTS)) {
      const text = outOfTime() || tooLarge(other) ? '' : declarations(other.getText());
      if (text) snippets.push({ path: other.uri.path, text });
    }
    for (const { other, window } of this.#similar(document, line, others, outOfTime)) {
      const { startLine, text } = window;
      // Recently edited regions may already include it.
      if (!snippets.some((snippet) => snippet.path === other.uri.path && text.includes(snippet.text)))
        snippets.push({ path: other.uri.path, startLine, text });
    }
    this.#last = {
      key,
      version: document.version,
      offset,
      complete: !outOfTime(),
      snippets: snippets.slice(0, MAX_SNIPPETS),
    };
    return this.#last.snippets;
  }

  dispose(): void {
    this.#follow(false);
  }

  /** Recently edited regions, except around the cursor. */
  #edited(document: vscode.TextDocument, line: number, others: readonly vscode.TextDocument[]): Snippet[] {
    const away = (region: Region) =>
      region.docId !== document.uri.toString() ||
      line < region.startLine - WINDOW_LINES / 2 ||
      line > region.endLine + WINDOW_LINES / 2;
    const snippets: Snippet[] = [];
    for (const region of this.#edits.regions.filter(away)) {
      const at = [document, ...others].find((other) => other.uri.toString() === region.docId);
      if (!at || snippets.length >= MAX_EDITS) continue;
      const startLine = Math.max(0, region.startLine - MARGIN_LINES);
      const endLine = Math.min(region.endLine + MARGIN_LINES, startLine + WINDOW_LINES) + 1;
      const text = at.getText(new vscode.Range(startLine, 0, endLine, 0)).trimEnd();
      if (text) snippets.push({ path: at.uri.path, startLine, text });
    }
    return snippets;
  }

  #similar(
    document: vscode.TextDocument,
    line: number,
    others: readonly vscode.TextDocument[],
    outOfTime: () => boolean,
  ) {
    const reference = wordsOf(document.getText(new vscode.Range(Math.max(0, line - WINDOW_LINES), 0, line + 1, 0)));
    const found: { other: vscode.TextDocument; window: NonNullable<ReturnType<Windows['best']>> }[] = [];
    for (const other of others) {
      if (outOfTime()) break;
      if (tooLarge(other)) continue;
      let known = this.#windows.get(other);
      if (known?.version !== other.version) {
        known = { version: other.version, windows: new Windows(other.getText()) };
        this.#windows.set(other, known);
      }
      known.windows.build(outOfTime);
      const window = known.windows.best(reference);
      if (window) found.push({ other, window });
    }
    return found.sort((a, b) => b.window.score - a.window.score);
  }

  #follow(wanted: boolean): void {
    if (wanted === this.#subscriptions.length > 0) return;
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#subscriptions = wanted
      ? [
          vscode.workspace.onDidChangeTextDocument((event) => this.#changed(event)),
          vscode.workspace.onDidCloseTextDocument(({ uri }) => this.#edits.forget(uri.toString())),
        ]
      : [];
  }

  #changed({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    if (contentChanges.length === 0 || excluded(document, this.#settings.current.completion)) return;
    for (const { range, text } of contentChanges) {
      this.#edits.add(
        document.uri.toString(),
        range.start.line,
        range.end.line,
        text.split('\n').length - 1 - (range.end.line - range.start.line),
      );
    }
  }
}

function tooLarge(document: vscode.TextDocument): boolean {
  return lengthOf(document) > MAX_FILE_CHARACTERS;
}
