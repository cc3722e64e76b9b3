/** Files that come to be secret, by globs that are added while the extension runs, or while it does not. */
import type { Disposable, Memento } from 'vscode';
import type { Config, Settings } from '../config.ts';

/** Of the workspace: the lists as it was open last. */
const EXCLUDED = 'kvasir.excluded';

/** The globs that hold, as they are kept. */
interface Excluded {
  /** Where a folder has none of its own. */
  readonly all: readonly string[];
  /** By a folder's address: its own, in the place of those. */
  readonly own: Readonly<Record<string, readonly string[]>>;
}

/**
 * Calls `clear` whenever a folder, or the window, has a glob of kvasir.completion.exclude that it had not before, be it that it has
 * lost a list of its own: at once where that was when this workspace was open last.
 */
export function onNewlyExcluded(
  workspace: Memento,
  settings: Pick<Settings, 'current' | 'onDidChange'>,
  clear: () => void,
): Disposable {
  const review = (before: Excluded, now: Excluded): void => {
    if (hasMore(before, now)) clear();
    void workspace.update(EXCLUDED, now);
  };
  const now = excludedBy(settings.current);
  review(keptIn(workspace) ?? now, now);
  return settings.onDidChange((change) => review(excludedBy(change.before), excludedBy(change.now)));
}

/** A folder that is in neither has the window's list, as files outside of all folders do. */
function hasMore(before: Excluded, now: Excluded): boolean {
  const isNew = (folder: string): boolean =>
    !listOf(now, folder).every((glob) => listOf(before, folder).includes(glob));
  return (
    !now.all.every((glob) => before.all.includes(glob)) || [before, now].some(({ own }) => Object.keys(own).some(isNew))
  );
}

function listOf({ all, own }: Excluded, folder: string): readonly string[] {
  return own[folder] ?? all;
}

function excludedBy({ completion: { exclude, excludeIn } }: Config): Excluded {
  return { all: exclude, own: Object.fromEntries(excludeIn ?? []) };
}

/** As earlier versions kept it, one list of all globs: those of folders, behind the folder's address, are nobody's then. */
function keptIn(workspace: Memento): Excluded | undefined {
  const kept = workspace.get<Excluded | readonly string[]>(EXCLUDED);
  return kept && !('all' in kept) ? { all: kept, own: {} } : kept;
}
