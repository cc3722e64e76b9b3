/** What would answer all the same, for a text that has no room, in the command line's own words. */
import { leastBudget } from '../cacheReach.ts';
import { RequestError } from '../errors.ts';
import { inspectFolder } from '../inspection.ts';
import type { ModelConfig } from '../model/hfConfig.ts';
import type { ErrorCode } from '../protocol.ts';
import { type CommandLine, KEPT_BYTES, loadOptionsOf } from './options.ts';
import { bytes, count } from './output.ts';

/** An error as it is to be told: what there is no room for with what to do about it, any other one as it is. */
export async function withRemedy(line: CommandLine, error: unknown): Promise<unknown> {
  if (!(error instanceof RequestError) || !hasRemedy(error.code)) return error;
  const { modelDir, kv, precision, contextTokens = Number.POSITIVE_INFINITY, disk } = loadOptionsOf(line);
  const told = (remedy: string): RequestError => new RequestError(error.code, `${error.message} ${remedy}`);
  // Rows in float32 are never read in parts, nor are there figures for them.
  if (kv === 'float32' || precision === 'float32') return told('The limit is --max-bytes.');
  const { model } = await inspectFolder(modelDir);
  return told(remedyFor(error.code, model.config, { numTokens: Math.min(contextTokens, model.config.contextTokens), keeps: disk !== undefined }));
}

type Remedied = 'outOfMemory' | 'diskFull' | 'writeFailed';

function hasRemedy(code: ErrorCode): code is Remedied {
  return code === 'outOfMemory' || code === 'diskFull' || code === 'writeFailed';
}

/** PURE. `numTokens`: of the longest text; `keeps`: there is a folder for what is not in memory. */
export function remedyFor(code: Remedied, config: ModelConfig, { numTokens, keeps }: { numTokens: number; keeps: boolean }): string {
  const [whole, inParts] = [leastBudget(config, numTokens, 0), leastBudget(config, numTokens, KEPT_BYTES)];
  const upTo = `a text of up to ${count(numTokens)} tokens`;
  if (code === 'diskFull') return `--keep takes up to ${bytes(KEPT_BYTES)} of its folder's disk; with about ${bytes(whole)} of --max-bytes ${upTo} is read whole, without any of it.`;
  if (code === 'writeFailed') return `With about ${bytes(whole)} of --max-bytes ${upTo} is read whole, without --keep.`;
  const isWhole = `The limit is --max-bytes: with about ${bytes(whole)} of it ${upTo} is read whole`;
  return inParts < whole ? `${isWhole}; with ${keeps ? '' : '--keep DIR and '}about ${bytes(inParts)} it is answered from the parts of it that matter.` : `${isWhole}.`;
}
