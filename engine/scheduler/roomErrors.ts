/**
 * What is said where there is no room for a text, or no way on for one that is kept on the disk as it is read: what,
 * where, what to do.
 */
import { t } from '@vscode/l10n';
import type { LostRows } from '../kv/disk/spillFile.ts';
import type { Lack } from '../kv/lease.ts';
import type { KvCache } from '../kv/kvCache.ts';
import { RequestError } from '../protocol/errors.ts';
import { formatBytes } from '../protocol/formatBytes.ts';

/** A lease's `failure`. */
export function lostRows({ message }: LostRows): RequestError {
  return new RequestError(
    'readFailed',
    t(
      'A part of this long text could not be read back from the disk ({0}). Ask again, and the text is read again.',
      message,
    ),
  );
}

/** The cache's limit, as users know it, how many windows share what it is a part of, and what would be enough. */
type Limit = Pick<KvCache, 'displayedLimitBytes' | 'numEditorWindows' | 'needs'>;

/** Rows that should have left the pool could not. */
export function lacking(lack: Lack, limit: Limit): RequestError {
  if (lack === 'memory') {
    return outOfMemory(
      limit,
      t(
        'This long text is read in parts, and the KV cache limit of {0} leaves no room for one more.',
        formatBytes(limit.displayedLimitBytes),
      ),
    );
  }
  const { reason, folder, maxBytes, message } = lack;
  if (reason === 'cap')
    return new RequestError(
      'diskFull',
      t(
        'This long text needs more disk space than the limit of {0} in {1}. Raise kvasir.cache.diskBytes or kvasir.cache.maxBytes, or send less text.',
        formatBytes(maxBytes),
        folder,
      ),
    );
  if (reason === 'full')
    return new RequestError(
      'diskFull',
      t(
        'The disk with {0} is full, so this long text does not fit. Free some space, allow the KV cache more memory, or send less text.',
        folder,
      ),
    );
  return new RequestError(
    'writeFailed',
    t(
      'A part of this long text could not be written to {0} ({1}). Check that the folder is writable, allow the KV cache more memory, or send less text.',
      folder,
      message,
    ),
  );
}

/** Beyond what memory takes, whole, and memory or the disk in parts. */
export function tooLarge(numTokens: number, cache: Pick<KvCache, 'capacity' | 'longContexts'> & Limit): RequestError {
  const { capacity, longContexts } = cache;
  const most = Math.max(0, capacity, longContexts.capacity);
  const { diskBound } = longContexts;
  if (diskBound !== null && numTokens > most) {
    return new RequestError(
      'diskFull',
      t(
        'The request has {0} tokens, but for a text longer than memory the disk limit of {2} holds {1}. Raise kvasir.cache.diskBytes or kvasir.cache.maxBytes, or send less text.',
        numTokens,
        most,
        formatBytes(diskBound),
      ),
    );
  }
  return outOfMemory(
    cache,
    t(
      'The request has {0} tokens, but the KV cache limit of {2} holds {1}.',
      numTokens,
      most,
      formatBytes(cache.displayedLimitBytes),
    ),
  );
}

/** What another window has is no limit that anybody has set: it is said where there is one. */
function outOfMemory(limit: Limit, message: string): RequestError {
  const numEditorWindows = limit.numEditorWindows();
  const shared =
    numEditorWindows > 1
      ? [t('{0} editor windows share this memory. With fewer windows open, each has more.', numEditorWindows)]
      : [];
  return new RequestError('outOfMemory', [message, remedy(limit, numEditorWindows), ...shared].join(' '));
}

/** In bytes of the setting, which is for all pools together. */
function remedy({ displayedLimitBytes, needs }: Limit, numEditorWindows: number): string {
  const told = displayedLimitBytes * numEditorWindows;
  const needed = needs();
  const [whole, inParts] = needed
    ? [upTo2Digits(needed.whole * numEditorWindows), upTo2Digits(needed.inParts * numEditorWindows)]
    : [0, 0];
  if (!needed || whole <= told) return t('Raise kvasir.cache.maxBytes or send less text.');
  const { numTokens, spills } = needed;
  if (inParts >= whole || (spills && inParts <= told))
    return t(
      'Raise kvasir.cache.maxBytes or send less text: about {0} are enough for {1} tokens.',
      formatBytes(whole),
      numTokens,
    );
  if (spills)
    return t(
      'Raise kvasir.cache.maxBytes or send less text: about {0} are enough for {1} tokens, or about {2} to read them in parts.',
      formatBytes(whole),
      numTokens,
      formatBytes(inParts),
    );
  return t(
    'Raise kvasir.cache.maxBytes or send less text: about {0} are enough for {1} tokens, or about {2} to read them in parts, which needs kvasir.cache.diskBytes above 0.',
    formatBytes(whole),
    numTokens,
    formatBytes(inParts),
  );
}

/** Up, so that whoever sets what is written has enough. */
function upTo2Digits(bytes: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(bytes)) - 1);
  return Math.ceil(bytes / unit) * unit;
}
