/** `kvasir inspect`: what a model folder is, whether it can run, the memory it needs, or the one reason why not. */
import { inspectModel } from '../model/importModel.ts';
import { builtInModelDir, type CommandLine } from './options.ts';
import { bytes, count, printJson, table } from './output.ts';

export async function inspect(line: CommandLine): Promise<number> {
  const dir = line.positionals[0] ?? builtInModelDir();
  const found = await inspectModel(dir);
  if (line.json) printJson({ type: 'model', ...found });
  else
    process.stdout.write(
      `${table([
        ['model', found.name],
        ['architecture', found.architecture],
        ['parameters', count(found.parameters)],
        ['context', `${count(found.contextTokens)} tokens`],
        ['weights, int8', bytes(found.weightsBytes.int8)],
        ['weights, float32', bytes(found.weightsBytes.float32)],
        ['KV per token, int8', bytes(found.kvBytesPerToken.int8)],
        ['KV per token, float32', bytes(found.kvBytesPerToken.float32)],
      ])}\nIt can run.\n`,
    );
  return 0;
}
