/** The hover and the lens of a symbol show a summary together with its notes. */
import { expect, it, vi } from 'vitest';
import { t } from '../../../support/editor/translate.ts';

vi.mock('../../../../src/vscode.ts', () => ({
  l10n: { t },
  languages: { match: () => 1, registerCodeLensProvider: () => ({ dispose() {} }) },
  MarkdownString: class {
    value: string;
    constructor(value: string) {
      this.value = value;
    }
    appendText(text: string): this {
      this.value += text;
      return this;
    }
    appendMarkdown(text: string): this {
      return this.appendText(text);
    }
  },
  Hover: class {
    contents: { value: string };
    constructor(contents: { value: string }) {
      this.contents = contents;
    }
  },
  CodeLens: class {
    command: object;
    constructor(_: unknown, command: object) {
      this.command = command;
    }
  },
}));
const symbol = { name: 'take', nameRange: { contains: () => true, start: { line: 0, character: 0 } }, range: {} };
vi.mock('../../../../src/symbols.ts', () => ({ symbolsOf: async () => [symbol] }));
const { SymbolHover, SymbolLens } = await import('../../../../src/summary/symbolSummaries.ts');

it('shows the note of a wrong summary', async () => {
  const note = '`take` does occur in a.ts: the model overlooked it';
  const summaries = {
    of: () => ({ known: { text: 'There is no `take` in a.ts.', notes: [note] }, running: false }),
    onDidChange: () => ({ dispose() {} }),
  } as never;
  const settings = {
    current: { summary: { hover: true, codeLens: false } },
    onDidChange: () => ({ dispose() {} }),
  } as never;
  const document = { uri: 'a.ts', getWordRangeAtPosition: () => ({}), getText: () => '' } as never;
  const hover = (await new SymbolHover(summaries, settings).provideHover(
    document,
    {} as never,
    {} as never,
  )) as unknown as { contents: { value: string } };
  expect(hover.contents.value).toBe(`$(sparkle) There is no \`take\` in a.ts.\n\n$(info) ${note}`);
  const [lens] = await new SymbolLens(summaries, settings).provideCodeLenses(document);
  expect(lens?.command).toMatchObject({
    title: `$(sparkle) There is no \`take\` in a.ts. (${note})`,
    tooltip: `There is no \`take\` in a.ts.\n\n${note}`,
  });
});
