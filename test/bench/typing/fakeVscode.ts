/** The fake editor under the names of the editor's API: what `vscode` is outside of an editor and of vitest (typingBench.ts). */
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
