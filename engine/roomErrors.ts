/** What is said where there is no room for a text, or no way on for one that is kept on the disk as it is read: what, where, what to do. */
import { t } from '@vscode/l10n';
import type { LostRows } from './cache/disk/spillFile.ts';
import type { Lack } from './cache/heldRuns.ts';
import type { KvCache } from './cache/kvCache.ts';
import { RequestError } from './errors.ts';

/** A lease's `failure`. */
export function lostRows({ message }: LostRows): RequestError {
  return new RequestError('readFailed', t('A part of this long text, kept on the disk, could not be read back ({0}). Ask again: it is read anew.', message));
}

/** The cache's limit, as users know it, and how many windows share what it is a part of. */
type Limit = Pick<KvCache, 'toldBytes' | 'numWindows'>;

/** Rows that should have left the window could not. */
export function lacking(lack: Lack, limit: Limit): RequestError {
  if (lack === 'memory') {
    return outOfMemory(limit, t('This long text is read in parts, and the {0} bytes of memory that the KV cache may take have no room for what has to be kept of one more. Raise the memory limit of the cache (kvasir.cache.maxBytes) or send less text.', limit.toldBytes));
  }
  const { reason, folder, maxBytes, message } = lack;
  if (reason === 'cap') return new RequestError('diskFull', t('The {0} bytes that the KV cache may take of the disk, in {1}, have no room for more of this long text. Allow it more of the disk (kvasir.cache.diskBytes) or more memory (kvasir.cache.maxBytes), or send less text.', maxBytes, folder));
  if (reason === 'full') return new RequestError('diskFull', t('The disk that {0} is on is full and takes no more of this long text. Free some of it, allow the KV cache more memory, or send less text.', folder));
  return new RequestError('writeFailed', t('A part of this long text could not be written to {0} ({1}). See to it that files can be written there, allow the KV cache more memory, or send less text.', folder, message));
}

/** Beyond what memory takes, whole, and memory or the disk in parts. */
export function tooLarge(numTokens: number, cache: Pick<KvCache, 'capacity' | 'sparse'> & Limit): RequestError {
  const { capacity, sparse } = cache;
  const most = Math.max(0, capacity, sparse.room.capacity);
  const { diskBound } = sparse.room;
  if (diskBound !== null && numTokens > most) {
    return new RequestError(
      'diskFull',
      t('The request has {0} tokens; of a text that memory cannot take whole, {1} fit into the {2} bytes that the KV cache may take of the disk. Allow it more of the disk (kvasir.cache.diskBytes) or more memory (kvasir.cache.maxBytes), or send less text.', numTokens, most, diskBound),
    );
  }
  return outOfMemory(
    cache,
    t('The request has {0} tokens; {1} fit into the {2} bytes that the KV cache may take, for rows and what they are computed with. Raise the memory limit of the cache (kvasir.cache.maxBytes) or send less text.', numTokens, most, cache.toldBytes),
  );
}

/** What another window has is no limit that anybody has set: it is said where there is one. */
function outOfMemory(limit: Limit, message: string): RequestError {
  const numWindows = limit.numWindows();
  return new RequestError('outOfMemory', numWindows > 1 ? `${message} ${t('That is this window’s part: {0} windows of the editor share the memory, and with fewer of them open each has more.', numWindows)}` : message);
}
