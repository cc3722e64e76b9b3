/**
 * The lens above each function and class: "Summarize", later the summary's first sentence. Registered only while its
 * setting is on.
 */
import * as vscode from '../vscode.ts';
import { DOCUMENTS } from '../completion/filter.ts';
import type { Settings } from '../config.ts';
import { symbolsOf } from '../symbols.ts';
import { argumentsOf, firstSentence, SUMMARIZE_SYMBOL, type SymbolSummaries } from './symbolSummaries.ts';

/** A file with more symbols is generated, or is read by its outline. */
const MAX_LENSES = 400;

export class SymbolLens implements vscode.CodeLensProvider, vscode.Disposable {
  readonly #summaries: SymbolSummaries;
  readonly #settings: Settings;
  readonly #subscription: vscode.Disposable;
  #registration: vscode.Disposable | undefined;

  constructor(summaries: SymbolSummaries, settings: Settings) {
    this.#summaries = summaries;
    this.#settings = settings;
    this.#subscription = settings.onDidChange(() => this.#follow());
    this.#follow();
  }

  get onDidChangeCodeLenses(): vscode.Event<void> {
    return this.#summaries.onDidChange;
  }

  async provideCodeLenses(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    const symbols = await symbolsOf(document);
    return symbols.slice(0, MAX_LENSES).map((symbol) => {
      const { known, running } = this.#summaries.of(document, symbol);
      const title = running
        ? vscode.l10n.t('Kvasir is summarizing {0}', symbol.name)
        : known
          ? firstSentence(known.text) + known.notes.map((note) => ` (${note})`).join('')
          : vscode.l10n.t('Summarize');
      return new vscode.CodeLens(symbol.nameRange, {
        title: `$(sparkle) ${withoutIcons(title)}`,
        tooltip: known ? [known.text, ...known.notes].join('\n\n') : '',
        command: SUMMARIZE_SYMBOL,
        arguments: argumentsOf(document, symbol),
      });
    });
  }

  dispose(): void {
    this.#subscription.dispose();
    this.#registration?.dispose();
  }

  #follow(): void {
    const wanted = this.#settings.current.summary.codeLens;
    if (wanted === (this.#registration !== undefined)) return;
    this.#registration?.dispose();
    this.#registration = wanted ? vscode.languages.registerCodeLensProvider(DOCUMENTS, this) : undefined;
  }
}

/** A lens would draw `$(name)` as an icon. */
function withoutIcons(text: string): string {
  return text.replace(/\$\(/g, '$ (');
}
