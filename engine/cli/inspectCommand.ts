/** `kvasir inspect`: what a model folder is, whether it can run, what for, the memory it needs, how far the cache reaches, or the one reason why not. */
import { type CacheReach, cacheReach } from '../server/cacheReach.ts';
import { inspectFolder } from '../server/inspection.ts';
import { memoryReading } from '../core/memoryBudget.ts';
import { mostWanted, USUAL_SHARE, wantedBytes } from '../core/memoryBudget.ts';
import { CACHE_CODECS } from '../protocol/messages.ts';
import { type CommandLine, KEPT_BYTES, modelDirOf, text, UsageError } from './options.ts';
import { bytes, count, printJson, table } from './output.ts';

export async function inspect(line: CommandLine): Promise<number> {
  const [folder, named] = [line.positionals[0], text(line, 'model')];
  if (folder !== undefined && named !== undefined)
    throw new UsageError('inspect: one model folder is looked at; give it alone or with --model');
  const { model, ...found } = await inspectFolder(modelDirOf(folder ?? named));
  // As a load would reckon it, which has the weights in memory by then.
  const { availableBytes, ...machine } = memoryReading(0);
  const settings = { maxBytes: 0, share: USUAL_SHARE };
  const budget = wantedBytes(settings, {
    ...machine,
    availableBytes: Math.max(0, availableBytes - found.residentBytes.int8),
  });
  const cache = cacheReach(model.config, budget, KEPT_BYTES, mostWanted(settings, machine.totalBytes));
  if (line.json) {
    printJson({ type: 'model', ...model, ...found, cache });
    return 0;
  }
  const can = [
    found.canComplete && 'completions',
    found.canChat && 'chat and summaries',
    found.canEdit && 'edits',
  ].filter((word) => word !== false);
  const rows = table([
    ['model', found.name],
    ['architecture', found.architecture],
    ['parameters', count(found.parameters)],
    ['context', `${count(found.contextTokens)} tokens`],
    ...(['int8', 'int4', 'float32'] as const).map((precision) => [
      `weights, ${precision}`,
      `${bytes(found.weightsBytes[precision])} on disk, ${bytes(found.residentBytes[precision])} in memory`,
    ]),
    ...(['int8', 'int4', 'float32'] as const).map((precision) => [
      `memory at work, ${precision}`,
      bytes(found.memoryBytes[precision]),
    ]),
    ['KV per token, int8', bytes(found.kvBytesPerToken.int8)],
    ['KV per token, float32', bytes(found.kvBytesPerToken.float32)],
    ['good for', can.join(', ') || 'raw prompts only: it has neither fill-in-the-middle tokens nor a chat template'],
  ]);
  process.stdout.write(
    `${rows}\n\n${reachText(cache, found.contextTokens)}\n\n${found.note ? `${found.note}\n` : ''}It can run.\n`,
  );
  return 0;
}

/** Of the files of which the table counts how many there is room for; in tokens. */
const FILE_TOKENS = 2000;

function reachText(
  { budgetBytes, poolTokens, longestContext, sketchedTokens, diskBytes, codecs }: CacheReach,
  contextTokens: number,
): string {
  const offered: readonly string[] = CACHE_CODECS;
  const limit =
    poolTokens >= contextTokens ? 'all that the model reads' : `of the ${count(contextTokens)} that the model reads`;
  return [
    `The cache has ${bytes(budgetBytes)} on this machine now, if the settings name no other figure: 60% of what is available, at most 2 GB.`,
    `The longest context in it has ${count(longestContext)} tokens, ${limit}.`,
    ...(sketchedTokens > 0 && poolTokens < contextTokens
      ? [
          `With ${bytes(diskBytes)} of the disk one of up to ${count(Math.min(sketchedTokens, contextTokens))} tokens is answered too, read in parts: an approximation.`,
        ]
      : []),
    `Beside the longest context in memory there is room for so many other files of ${count(FILE_TOKENS)} tokens, by how they are kept (--codec):`,
    table([
      ['codec', 'bytes a token', 'against float16', 'files'],
      ...codecs
        .filter(({ codec }) => offered.includes(codec))
        .map(({ codec, bytesPerToken, compression, storedTokens }) => [
          codec,
          bytesPerToken.toFixed(0),
          `${compression.toFixed(2)}x`,
          count(Math.floor(storedTokens / FILE_TOKENS)),
        ]),
    ]),
    'With auto it is some of each: int8, int4-kivi and turboquant, by how long a file has been left and how full memory is.',
  ].join('\n');
}
