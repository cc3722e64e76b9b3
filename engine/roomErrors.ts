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

/** Rows that should have left the window could not. `memoryBytes`: the cache's limit, as users know it. */
export function lacking(lack: Lack, memoryBytes: number): RequestError {
  if (lack === 'memory') {
    return new RequestError('outOfMemory', t('This long text is read in parts, and the {0} bytes of memory that the KV cache may take have no room for what has to be kept of one more. Raise the memory limit of the cache or send less text.', memoryBytes));
  }
  const { reason, folder, maxBytes, message } = lack;
  if (reason === 'cap') return new RequestError('diskFull', t('The {0} bytes that the KV cache may take of the disk, in {1}, have no room for more of this long text. Allow it more of the disk or more memory, or send less text.', maxBytes, folder));
  if (reason === 'full') return new RequestError('diskFull', t('The disk that {0} is on is full and takes no more of this long text. Free some of it, allow the KV cache more memory, or send less text.', folder));
  return new RequestError('writeFailed', t('A part of this long text could not be written to {0} ({1}). See to it that files can be written there, allow the KV cache more memory, or send less text.', folder, message));
}

/** Beyond what memory takes, whole, and memory or the disk in parts. */
export function tooLarge(numTokens: number, { capacity, sparse, toldBytes }: Pick<KvCache, 'capacity' | 'sparse' | 'toldBytes'>): RequestError {
  const most = Math.max(0, capacity, sparse.room.capacity);
  const { diskBound } = sparse.room;
  if (diskBound !== null && numTokens > most) {
    return new RequestError(
      'diskFull',
      t('The request has {0} tokens; of a text that memory cannot take whole, {1} fit into the {2} bytes that the KV cache may take of the disk. Allow it more of the disk or more memory, or send less text.', numTokens, most, diskBound),
    );
  }
  return new RequestError(
    'outOfMemory',
    t('The request has {0} tokens; {1} fit into the {2} bytes that the KV cache may take, for rows and what they are computed with. Raise the memory limit of the cache or send less text.', numTokens, most, toldBytes),
  );
}
