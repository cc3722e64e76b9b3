/** What would answer all the same, for a text that has no room, in the command line's own words. */
import { leastBudget } from '../cacheReach.ts';
import { RequestError } from '../errors.ts';
import { inspectFolder } from '../inspection.ts';
import type { ModelConfig } from '../model/hfConfig.ts';
import { type CommandLine, KEPT_BYTES, loadOptionsOf } from './options.ts';
import { bytes, count } from './output.ts';

/** An error as it is to be told: what there is no room for with what to do about it, any other one as it is. */
export async function withRemedy(line: CommandLine, error: unknown): Promise<unknown> {
  if (!(error instanceof RequestError)) return error;
  const { code } = error;
  const message = inOptions(error.message);
  // How much memory would do the engine says.
  if (code === 'outOfMemory') return new RequestError(code, message);
  if (code !== 'diskFull' && code !== 'writeFailed') return error;
  const { modelDir, contextTokens = Number.POSITIVE_INFINITY } = loadOptionsOf(line);
  const { model } = await inspectFolder(modelDir);
  return new RequestError(
    code,
    `${message} ${remedyFor(code, model.config, Math.min(contextTokens, model.config.contextTokens))}`,
  );
}

/** PURE: settings of the editor by the names that they have here. */
function inOptions(message: string): string {
  return message
    .replaceAll('kvasir.cache.maxBytes', '--max-bytes')
    .replace(', for which kvasir.cache.diskBytes must not be 0', ' with --keep DIR')
    .replaceAll(' (kvasir.cache.diskBytes)', '');
}

/** PURE. `numTokens`: of the longest text. */
export function remedyFor(code: 'diskFull' | 'writeFailed', config: ModelConfig, numTokens: number): string {
  const whole = `with about ${bytes(leastBudget(config, numTokens, 0))} of --max-bytes a text of up to ${count(numTokens)} tokens is read whole`;
  if (code === 'diskFull')
    return `--keep takes up to ${bytes(KEPT_BYTES)} of its folder's disk; ${whole}, without any of it.`;
  return `W${whole.slice(1)}, without --keep.`;
}
