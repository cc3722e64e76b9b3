/** The light bulb offers to fix or explain a problem and to explain a selection, and nothing elsewhere. */
import { expect, test, vi } from 'vitest';

const registered = vi.hoisted(() => ({
  provider: undefined as unknown as {
    provideCodeActions(
      ...args: unknown[]
    ): { title: string; command: { command: string; arguments: unknown[] }; diagnostics?: unknown[] }[];
  },
}));
vi.mock('../../../../src/vscode.ts', () => {
  class Kind {
    readonly value: string;
    constructor(value: string) {
      this.value = value;
    }
    contains(other: Kind): boolean {
      return other.value === this.value || other.value.startsWith(`${this.value}.`);
    }
  }
  return {
    CodeActionKind: {
      QuickFix: new Kind('quickfix'),
      Refactor: new Kind('refactor'),
      RefactorRewrite: new Kind('refactor.rewrite'),
    },
    CodeAction: class {
      title: string;
      constructor(title: string) {
        this.title = title;
      }
    },
    l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
    languages: {
      registerCodeActionsProvider: (_: unknown, provider: never) => Object.assign(registered, { provider }),
    },
  };
});
const { registerChatCodeActions } = await import('../../../../src/chat/chatCommands.ts');
const { CodeActionKind } = (await import('../../../../src/vscode.ts')) as unknown as {
  CodeActionKind: Record<string, unknown>;
};
registerChatCodeActions([]);

const range = (isEmpty: boolean) => ({ isEmpty, start: { line: 6 } });
const actions = (isEmpty: boolean, diagnostics: unknown[], only?: unknown) =>
  registered.provider.provideCodeActions({ uri: 'file:///a.ts' }, range(isEmpty), { diagnostics, only });
const problem = (severity: number, message: string, line: number) => ({
  severity,
  message,
  range: { start: { line } },
});

test('the actions are about the worst problem at the place, with its message on one line', () => {
  const found = actions(true, [problem(1, 'unused', 2), problem(0, "Type 'x'\n  is not assignable.", 6)]);
  expect(found.map(({ title, command }) => [title, command.command, command.arguments[2]])).toEqual([
    ['Kvasir: Fix', 'kvasir.fix', "Type 'x' is not assignable. (line 7)"],
    ['Kvasir: Explain', 'kvasir.explain', "Type 'x' is not assignable. (line 7)"],
  ]);
  expect(found[0]!.diagnostics).toHaveLength(1);
});

test('a selection can be explained; a cursor alone gets no action', () => {
  expect(actions(false, []).map(({ title, command }) => [title, command.arguments.length])).toEqual([
    ['Kvasir: Explain', 2],
  ]);
  expect(actions(true, [])).toEqual([]);
});

test('a request for one kind of action gets only that kind', () => {
  expect(actions(false, [], CodeActionKind.QuickFix)).toEqual([]);
  expect(actions(false, [], CodeActionKind.Refactor)).toHaveLength(1);
  expect(actions(true, [problem(0, 'x', 1)], CodeActionKind.Refactor)).toEqual([]);
});
