/** The hover of a function's or class's name: its summary, or a link that makes one. Hovering computes nothing. */
import * as vscode from '../vscode.ts';
import { DOCUMENTS } from '../completion/filter.ts';
import type { Settings } from '../config.ts';
import { symbolsOf } from '../symbols.ts';
import { argumentsOf, SUMMARIZE_SYMBOL, type SymbolSummaries } from './symbolSummaries.ts';

export class SymbolHover implements vscode.HoverProvider {
  readonly #summaries: SymbolSummaries;
  readonly #settings: Settings;

  constructor(summaries: SymbolSummaries, settings: Settings) {
    this.#summaries = summaries;
    this.#settings = settings;
  }

  async provideHover(
    document: vscode.TextDocument,
    position: vscode.Position,
    token: vscode.CancellationToken,
  ): Promise<vscode.Hover | undefined> {
    if (
      !this.#settings.current.summary.hover ||
      vscode.languages.match(DOCUMENTS, document) === 0 ||
      !document.getWordRangeAtPosition(position)
    )
      return undefined;
    const symbol = (await symbolsOf(document)).find(({ nameRange }) => nameRange.contains(position));
    if (!symbol || token.isCancellationRequested) return undefined;
    const { known, running } = this.#summaries.of(document, symbol);
    const content = new vscode.MarkdownString('$(sparkle) ', true);
    // A model's words are shown as text, never as markup.
    if (known) {
      content.appendText(known.text);
      for (const note of known.notes) content.appendMarkdown('\n\n$(info) ').appendText(note);
    } else if (running) content.appendText(vscode.l10n.t('Kvasir is summarizing {0}', symbol.name));
    else {
      content.isTrusted = { enabledCommands: [SUMMARIZE_SYMBOL] };
      content.appendMarkdown(
        `[${vscode.l10n.t('Summarize with Kvasir')}](command:${SUMMARIZE_SYMBOL}?${encodeURIComponent(JSON.stringify(argumentsOf(document, symbol)))})`,
      );
    }
    return new vscode.Hover(content, symbol.nameRange);
  }
}
