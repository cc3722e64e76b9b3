/**
 * Errors for requests that do not fit into memory, disk or context, and for lost rows. Each message says what failed,
 * where, and what the user can do.
 */
import { t } from '@vscode/l10n';
import type { LostRows } from '../kv/disk/spillFile.ts';
import type { Lack } from '../kv/lease.ts';
import type { KvCache } from '../kv/kvCache.ts';
import { RequestError } from '../protocol/errors.ts';
import { formatBytes } from '../protocol/formatBytes.ts';
import type { Sequence } from '../sequence/sequence.ts';

/** Why a sequence can never run: its prompt fills the context, or has unknown token ids. Null: it can. */
export function refusalOf(
  { numPromptTokens, tokenIds }: Pick<Sequence, 'numPromptTokens' | 'tokenIds'>,
  maxContext: number,
  vocabSize: number,
): RequestError | null {
  if (numPromptTokens >= maxContext) {
    return new RequestError(
      'contextTooLong',
      sentences(
        t('The prompt has {0} tokens, but the context holds {1} including the answer.', numPromptTokens, maxContext),
        t('Send less text or use a longer context.'),
      ),
    );
  }
  const unknown = tokenIds.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
  return unknown === undefined
    ? null
    : new RequestError('badRequest', `Token id ${unknown} is not in the vocabulary of ${vocabSize}.`);
}

/** Rows of a lease are lost; the lease's `failure` says why. */
export function lostRows({ message }: LostRows): RequestError {
  return new RequestError(
    'readFailed',
    t(
      'A part of this long text could not be read back from the disk ({0}). Ask again, and the text is read again.',
      message,
    ),
  );
}

/** The budgets, in bytes, that are about enough for the longest texts. */
export interface Needs {
  /** Tokens of such a text. */
  readonly numTokens: number;
  /** For a text that is in the pool as a whole. */
  readonly whole: number;
  /** For a text with parts in a spill file; less than `whole`. */
  readonly inParts: number;
  /** Whether there is a spill file. */
  readonly spills: boolean;
}

/** The memory limit as users know it. */
export interface MemoryLimit {
  /** The budget of the engine. It includes memory beside pool and store. */
  readonly bytes: () => number;
  /** Editor windows that share the memory. Each has such a budget. */
  readonly numEditorWindows: () => number;
  /** Budgets that would be enough. Null: they are not known. */
  readonly needs: () => Needs | null;
}

/** Computed rows of a long context could not leave the pool. */
export function lacking(lack: Lack, limit: MemoryLimit): RequestError {
  if (lack === 'memory') {
    return outOfMemory(
      limit,
      t(
        'This long text is read in parts, and the KV cache limit of {0} is too small for the next part.',
        formatBytes(limit.bytes()),
      ),
    );
  }
  const { reason, folder, maxBytes, message } = lack;
  if (reason === 'cap')
    return diskFull(
      t('This long text needs more disk space than the limit of {0} in {1}.', formatBytes(maxBytes), folder),
    );
  if (reason === 'full')
    return new RequestError(
      'diskFull',
      sentences(
        t('The disk with {0} is full, so this long text does not fit.', folder),
        t('Free some space, allow the KV cache more memory, or send less text.'),
      ),
    );
  return new RequestError(
    'writeFailed',
    sentences(
      t('A part of this long text could not be written to {0} ({1}).', folder, message),
      t('Check that the folder is writable, allow the KV cache more memory, or send less text.'),
    ),
  );
}

/** A request of `numTokens` tokens fits neither whole into memory nor in parts into memory or disk. */
export function tooLarge(
  numTokens: number,
  { capacity, longContexts }: Pick<KvCache, 'capacity' | 'longContexts'>,
  limit: MemoryLimit,
): RequestError {
  const most = Math.max(0, capacity, longContexts.capacity);
  const { diskBound } = longContexts;
  if (diskBound !== null && numTokens > most) {
    return diskFull(
      t(
        'The request has {0} tokens. It does not fit into memory, and the disk limit of {2} holds {1}.',
        numTokens,
        most,
        formatBytes(diskBound),
      ),
    );
  }
  return outOfMemory(
    limit,
    t(
      'The request has {0} tokens, but the KV cache limit of {2} holds {1}.',
      numTokens,
      most,
      formatBytes(limit.bytes()),
    ),
  );
}

function diskFull(message: string): RequestError {
  return new RequestError(
    'diskFull',
    sentences(message, t('Raise kvasir.cache.diskBytes or kvasir.cache.maxBytes, or send less text.')),
  );
}

/** With several windows the message says that they share the memory: no setting shows it. */
function outOfMemory(limit: MemoryLimit, message: string): RequestError {
  const numEditorWindows = limit.numEditorWindows();
  const shared =
    numEditorWindows > 1
      ? [t('{0} editor windows share this memory. With fewer windows open, each has more.', numEditorWindows)]
      : [];
  return new RequestError('outOfMemory', sentences(message, remedy(limit, numEditorWindows), ...shared));
}

/** What the user can do. Sizes are those of the setting, which all windows share. */
function remedy({ bytes, needs }: MemoryLimit, numEditorWindows: number): string {
  const setting = bytes() * numEditorWindows;
  const needed = needs();
  const [whole, inParts] = needed
    ? [upTo2Digits(needed.whole * numEditorWindows), upTo2Digits(needed.inParts * numEditorWindows)]
    : [0, 0];
  if (!needed || whole <= setting) return t('Raise kvasir.cache.maxBytes or send less text.');
  const { numTokens, spills } = needed;
  if (inParts >= whole || (spills && inParts <= setting))
    return t(
      'Raise kvasir.cache.maxBytes or send less text: about {0} are enough for {1} tokens.',
      formatBytes(whole),
      numTokens,
    );
  const both = t(
    'Raise kvasir.cache.maxBytes or send less text: about {0} are enough for {1} tokens, or {2} to read them in parts.',
    formatBytes(whole),
    numTokens,
    formatBytes(inParts),
  );
  return spills ? both : sentences(both, t('To read in parts, kvasir.cache.diskBytes must be above 0.'));
}

function sentences(...texts: readonly string[]): string {
  return texts.join(' ');
}

/** Rounds up to two digits, so that the size shown is enough. */
function upTo2Digits(bytes: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(bytes)) - 1);
  return Math.ceil(bytes / unit) * unit;
}
