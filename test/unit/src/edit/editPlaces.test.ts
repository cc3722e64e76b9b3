/** Applying a code block or an instruction when the file is edited while its definitions are looked up. */
import { beforeEach, expect, test, vi } from 'vitest';
import type { ShowEdit } from '../../../../src/edit/editPreview.ts';
import { t } from '../../../support/editor/translate.ts';

const editor = vi.hoisted(() => ({ active: undefined as unknown, messages: [] as string[] }));
vi.mock('../../../../src/vscode.ts', () => ({
  l10n: { t },
  languages: { match: () => 1 },
  Range: class {
    readonly start: number;
    readonly end: number;
    constructor(start: number, end: number) {
      this.start = start;
      this.end = end;
    }
  },
  window: {
    get activeTextEditor() {
      return editor.active;
    },
    showWarningMessage: (message: string) => void editor.messages.push(message),
  },
}));
/** Edits made during the lookups of definitions, one for each lookup. */
const edits: string[] = [];
const document = {
  text: '',
  version: 1,
  getText: () => document.text,
  offsetAt: (offset: number) => offset,
  positionAt: (offset: number) => offset,
};
function lookUp(): { start: number; end: number } {
  const start = document.text.indexOf('function f');
  const edit = edits.shift();
  if (edit !== undefined) Object.assign(document, { text: edit + document.text, version: document.version + 1 });
  return { start, end: document.text.length - (edit?.length ?? 0) };
}
vi.mock('../../../../src/chat/chatSymbols.ts', () => ({ symbolsOf: async () => [{ name: 'f', range: lookUp() }] }));
vi.mock('../../../../src/edit/editRequest.ts', () => ({
  targetOf: async () => ({ range: lookUp(), name: 'f' }),
  askInstruction: async () => 'shorter',
}));
vi.mock('../../../../src/edit/ability.ts', () => ({ followsInstructions: async () => true }));
const { CodeBlocks } = await import('../../../../src/chat/codeBlocks.ts');
const { EditSelection } = await import('../../../../src/edit/editSelection.ts');

beforeEach(() => {
  edits.length = 0;
  Object.assign(document, { text: 'const a = 1;\nfunction f() {\n  return 1;\n}', version: 1 });
  editor.messages = [];
  editor.active = { document, selection: { isEmpty: true, start: 0, end: 0 } };
});

test('a block replaces its definition at the position after the edit', async () => {
  edits.push('// one\n', '// two\n');
  const shown: ShowEdit[] = [];
  const blocks = new CodeBlocks({ show: async (edit: ShowEdit) => shown.push(edit) } as never);
  await blocks.run('apply', 'function f() {\n  return 2;\n}\n', 'ts', editor.active as never);
  const { start, end } = shown[0]!.range as unknown as { start: number; end: number };
  expect(document.text.slice(start, end)).toBe('function f() {\n  return 1;\n}');
});

test('an instruction is refused if the file has changed in the meantime', async () => {
  edits.push('// one\n');
  await new EditSelection({} as never, {} as never, {} as never, {} as never).run();
  expect(editor.messages).toEqual([expect.stringContaining('the file changed')]);
});
