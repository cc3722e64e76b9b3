/** Files that come to be secret, by globs that are added while the extension runs, or while it does not. */
import type { Disposable, Memento } from 'vscode';
import type { Settings } from '../config.ts';

/** Of the workspace: the globs as it was open last. */
const EXCLUDED = 'kvasir.excluded';

/** Calls `clear` whenever kvasir.completion.exclude has a glob that it had not before: at once where that was when this workspace was open last. */
export function onNewlyExcluded(workspace: Memento, settings: Pick<Settings, 'current' | 'onDidChange'>, clear: () => void): Disposable {
  const review = (before: readonly string[], now: readonly string[]): void => {
    if (!now.every((glob) => before.includes(glob))) clear();
    void workspace.update(EXCLUDED, now);
  };
  const { exclude } = settings.current.completion;
  review(workspace.get<string[]>(EXCLUDED, exclude), exclude);
  return settings.onDidChange(({ before, now }) => review(before.completion.exclude, now.completion.exclude));
}
