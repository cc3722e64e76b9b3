/** How near files are to one another. Pure. */

interface Place {
  readonly authority: string;
  readonly path: string;
}

/** Folders, from the top down, that two files have in common, -1 on different machines. A file counts as one of its own folders: the cells of a notebook are nearer to one another than to anything else. */
export function numSharedFolders(a: Place, b: Place): number {
  if (a.authority !== b.authority) return -1;
  const [first, second] = [a.path.split('/'), b.path.split('/')];
  const differs = first.findIndex((name, i) => name !== second[i]);
  return differs < 0 ? first.length : differs;
}
