/** Detects files that have become secret because of new globs, added while the extension runs or while it did not. */
import type { Disposable, Memento } from 'vscode';
import type { Config, Settings } from '../config.ts';

/** Key in the workspace state: the globs of the last session. */
const EXCLUDED = 'kvasir.excluded';

/** The globs in force, in the form that is stored. */
interface Excluded {
  /** The window's list, for folders without their own. */
  readonly all: readonly string[];
  /** Lists of folders that have their own, by the folder's URI. */
  readonly own: Readonly<Record<string, readonly string[]>>;
}

/**
 * Calls `clear` when the window or a folder gains a glob of kvasir.completion.exclude, also when a folder loses its own
 * list. Calls it at once when that happened since the last session.
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

/** A folder in neither list has the window's list, and so have files outside all folders. */
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

/**
 * Earlier versions stored one list of all globs, with those of folders prefixed by the folder's URI. The prefixed ones
 * match nothing now.
 */
function keptIn(workspace: Memento): Excluded | undefined {
  const kept = workspace.get<Excluded | readonly string[]>(EXCLUDED);
  return kept && !('all' in kept) ? { all: kept, own: {} } : kept;
}
