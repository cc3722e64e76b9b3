/**
 * Exports the fake editor under the names of the editor's API. `typingBench.ts` uses it as `vscode`, outside an editor
 * and vitest.
 */
import { vscodeApi } from '../../support/editor/fakeEditor.ts';

export const {
  EndOfLine,
  InlineCompletionTriggerKind,
  ConfigurationTarget,
  Position,
  Range,
  EventEmitter,
  TabInputText,
  TabInputTextDiff,
  TabInputNotebook,
  l10n,
  languages,
  commands,
  window,
  workspace,
} = vscodeApi;
