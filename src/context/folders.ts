/** Distance between files in the folder tree. Pure. */

interface Place {
  readonly authority: string;
  readonly path: string;
}

/**
 * Number of common folders of two files, from the root; -1 on different machines. A file counts as one of its own
 * folders, so the cells of a notebook are nearest to each other.
 */
export function numSharedFolders(a: Place, b: Place): number {
  if (a.authority !== b.authority) return -1;
  const [first, second] = [a.path.split('/'), b.path.split('/')];
  const differs = first.findIndex((name, i) => name !== second[i]);
  return differs < 0 ? first.length : differs;
}
