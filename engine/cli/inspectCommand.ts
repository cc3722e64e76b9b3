/**
 * The command `kvasir inspect`: shows what a model can do, its memory, and how many tokens the cache holds, or
 * the reason why it cannot run. Does not load the model.
 */
import { type CacheReach, cacheReach } from '../server/cacheReach.ts';
import { inspectFolder } from '../server/inspection.ts';
import { memoryReading, mostWanted, wantedBytes } from '../core/memoryBudget.ts';
import { CACHE_CODECS } from '../protocol/messages.ts';
import { builtInModelDir, modelPath } from './modelArgument.ts';
import { type CommandLine, MAX_KEPT_BYTES, text } from './options.ts';
import { bytes, count, printJson, table } from './output.ts';
import { UsageError } from './usageError.ts';

export async function inspect(line: CommandLine): Promise<number> {
  const [folder, named] = [line.positionals[0], text(line, 'model')];
  if (folder !== undefined && named !== undefined)
    throw new UsageError('inspect: name one model, alone or with --model');
  const modelDir = folder === undefined ? (named ?? builtInModelDir()) : await modelPath(folder);
  const { model, ...found } = await inspectFolder(modelDir, line.values.onnx !== true);
  // When the budget is chosen, the weights are in memory already.
  const { availableBytes, ...machine } = memoryReading(0);
  const budget = wantedBytes(0, {
    ...machine,
    availableBytes: Math.max(0, availableBytes - found.residentBytes.int8),
  });
  const cache = cacheReach(model.config, budget, MAX_KEPT_BYTES, {
    mostBytes: mostWanted(0, machine.totalBytes),
    hasOneLane: model.isNative,
  });
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
    ['stored in', found.format],
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
    ['can do', can.join(', ') || 'raw text only: it has no known fill-in-the-middle tokens and no chat template'],
    ...(found.completionFault === null ? [] : [['no completions', found.completionFault]]),
  ]);
  process.stdout.write(
    `${rows}\n\n${reachText(cache, found.contextTokens)}\n\n${found.note ? `${found.note}\n` : ''}This model can run.\n`,
  );
  return 0;
}

/** Size of the files that the table counts, in tokens. */
const FILE_TOKENS = 2000;

function reachText(
  { budgetBytes, poolTokens, longestContext, sketchedTokens, diskBytes, codecs }: CacheReach,
  contextTokens: number,
): string {
  const offered: readonly string[] = CACHE_CODECS;
  const limit =
    poolTokens >= contextTokens ? 'the whole context of the model' : `of the model's ${count(contextTokens)}`;
  return [
    `Default memory budget of the KV cache on this machine now: ${bytes(budgetBytes)} (60% of the available memory, at most 2 GB).`,
    `Longest context that fits in it: ${count(longestContext)} tokens, ${limit}.`,
    ...(sketchedTokens > 0 && poolTokens < contextTokens
      ? [
          `With ${bytes(diskBytes)} of disk: up to ${count(Math.min(sketchedTokens, contextTokens))} tokens, ` +
            'read in parts (an approximation).',
        ]
      : []),
    `Files of ${count(FILE_TOKENS)} tokens that fit beside the longest context, by codec (--codec):`,
    table([
      ['codec', 'bytes/token', 'vs float16', 'files'],
      ...codecs
        .filter(({ codec }) => offered.includes(codec))
        .map(({ codec, bytesPerToken, compression, storedTokens }) => [
          codec,
          bytesPerToken.toFixed(0),
          `${compression.toFixed(2)}x`,
          count(Math.floor(storedTokens / FILE_TOKENS)),
        ]),
    ]),
    'The codec auto mixes int8, int4-kivi and turboquant, by how long a file has been idle and how full the memory is.',
  ].join('\n');
}
