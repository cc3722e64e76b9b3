/** `kvasir inspect`: what a model folder is, whether it can run, what for, the memory it needs, or the one reason why not. */
import { inspectFolder } from '../inspection.ts';
import { builtInModelDir, type CommandLine } from './options.ts';
import { bytes, count, printJson, table } from './output.ts';

export async function inspect(line: CommandLine): Promise<number> {
  const { model, ...found } = await inspectFolder(line.positionals[0] ?? builtInModelDir());
  if (line.json) {
    printJson({ type: 'model', ...model, ...found });
    return 0;
  }
  const can = [found.canComplete && 'completions', found.canChat && 'chat and summaries', found.canEdit && 'edits'].filter((word) => word !== false);
  const rows = table([
    ['model', found.name],
    ['architecture', found.architecture],
    ['parameters', count(found.parameters)],
    ['context', `${count(found.contextTokens)} tokens`],
    ...(['int8', 'int4', 'float32'] as const).map((precision) => [`weights, ${precision}`, `${bytes(found.weightsBytes[precision])} on disk, ${bytes(found.residentBytes[precision])} in memory`]),
    ...(['int8', 'int4', 'float32'] as const).map((precision) => [`memory at work, ${precision}`, bytes(found.memoryBytes[precision])]),
    ['KV per token, int8', bytes(found.kvBytesPerToken.int8)],
    ['KV per token, float32', bytes(found.kvBytesPerToken.float32)],
    ['good for', can.join(', ') || 'raw prompts only: it has neither fill-in-the-middle tokens nor a chat template'],
  ]);
  process.stdout.write(`${rows}\n${found.note ? `${found.note}\n` : ''}It can run.\n`);
  return 0;
}
