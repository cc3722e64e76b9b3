/** Files that come to be secret, by globs that are added while the extension runs, or while it does not. */
import type { Disposable, Memento } from 'vscode';
import type { Config, Settings } from '../config.ts';

/** Of the workspace: the globs as it was open last. */
const EXCLUDED = 'kvasir.excluded';

/** Calls `clear` whenever kvasir.completion.exclude has a glob that it had not before: at once where that was when this workspace was open last. */
export function onNewlyExcluded(workspace: Memento, settings: Pick<Settings, 'current' | 'onDidChange'>, clear: () => void): Disposable {
  const review = (before: readonly string[], now: readonly string[]): void => {
    if (!now.every((glob) => before.includes(glob))) clear();
    void workspace.update(EXCLUDED, now);
  };
  const globs = globsOf(settings.current);
  review(workspace.get<string[]>(EXCLUDED, globs), globs);
  return settings.onDidChange(({ before, now }) => review(globsOf(before), globsOf(now)));
}

/** Those of a folder by its name: what is old in one may be new in another. */
function globsOf({ completion: { exclude, excludeIn } }: Config): string[] {
  return [...exclude, ...[...(excludeIn ?? [])].flatMap(([folder, globs]) => globs.map((glob) => `${folder} ${glob}`))];
}
