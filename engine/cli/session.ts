/** One command's stay in the engine: load, do the work, close, whatever happens. */
import { rename, rm, stat, writeFile } from 'node:fs/promises';
import { makeFolders } from '../kv/disk/makeFolders.ts';
import type { ModelConfig } from '../model/load/hfConfig.ts';
import { RequestError } from '../protocol/errors.ts';
import type { LoadOptions } from '../protocol/messages.ts';
import type { ModelInfo } from '../protocol/stats.ts';
import type { Task } from '../protocol/tasks.ts';
import { leastBudget } from '../server/cacheReach.ts';
import { inspectFolder } from '../server/inspection.ts';
import { type Chunk, Client, type Done, type GenerateOptions } from './cliClient.ts';
import { FileError, checkTextFile, whyNot } from './cliFiles.ts';
import { type CommandLine, KEPT_BYTES, loadOptionsOf, samplingOf, text, texts } from './options.ts';
import { bytes, count, doneLine, footer, log, printJson } from './output.ts';

export async function withClient<T>(
  line: CommandLine,
  work: (client: Client, model: ModelInfo) => Promise<T>,
): Promise<T> {
  const client = new Client();
  let shown = performance.now();
  try {
    const options = loadOptionsOf(line);
    const trace = text(line, 'trace');
    // Not found out when the model is loaded, nor when all the work is done.
    for (const file of [text(line, 'file'), ...texts(line, 'file'), ...texts(line, 'beside')])
      if (file !== undefined) await checkTextFile(file);
    await checkFolder('--cache-dir', options.cacheDir);
    if (options.disk) await checkFolder('--keep', options.disk.dir, 0o700);
    if (trace !== undefined) await checkWritable(trace);
    const model = await client.load(options, (stage, fraction) => {
      // A large model takes minutes to import: say so, at most every second.
      if (stage === 'import' && performance.now() - shown > 1000) {
        shown = performance.now();
        log(`importing the model: ${(100 * fraction).toFixed(0)}%`);
      }
    });
    tellLimits(line, options, model);
    const result = await work(client, model);
    if (trace !== undefined) await writeWhole(trace, await client.trace());
    return result;
  } finally {
    await client.close();
  }
}

/** What was asked for and is more than there can be, or comes to nothing. */
function tellLimits(line: CommandLine, options: LoadOptions, { name, contextTokens }: ModelInfo): void {
  if (options.contextTokens !== undefined && options.contextTokens > contextTokens)
    log(`note: --context ${options.contextTokens}: ${name} reads at most ${contextTokens} tokens`);
  const maxTokens = samplingOf(line).maxTokens ?? 0;
  if (maxTokens > contextTokens)
    log(`note: --max-tokens ${maxTokens}: prompt and answer together have at most ${contextTokens} tokens`);
  const isSingle = ['message', 'prompt', 'ids'].some((name) => text(line, name) !== undefined);
  if (options.compress !== undefined && isSingle)
    log(
      `note: --codec ${text(line, 'codec')} changes nothing in one answer: only what nobody has used for a minute is compressed`,
    );
}

/** Makes it where it is missing. */
async function checkFolder(option: string, dir: string, mode?: number): Promise<void> {
  try {
    await makeFolders(dir, mode);
  } catch (error) {
    throw new RequestError('badRequest', `${option} ${dir}: ${whyNoFolder(error)}; name another folder`);
  }
}

function whyNoFolder(error: unknown): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EEXIST':
    case 'ENOTDIR':
      return 'there is a file where a folder is needed';
    case 'ENOENT':
      return 'the file system takes no new folder there';
    default:
      return whyNot(error);
  }
}

async function checkWritable(file: string): Promise<void> {
  if ((await stat(file).catch(() => null))?.isDirectory())
    throw new FileError(file, 'is a folder; a file is needed', 'of another kind');
  const temporary = temporaryOf(file);
  await writing(file, () => writeFile(temporary, ''));
  await rm(temporary, { force: true });
}

/** Whoever reads the file meanwhile, a collector for instance, finds the old text or the new one. */
async function writeWhole(file: string, content: string): Promise<void> {
  const temporary = temporaryOf(file);
  await writing(file, async () => {
    await writeFile(temporary, content);
    await rename(temporary, file);
  });
}

const temporaryOf = (file: string) => `${file}.${process.pid}.tmp`;

async function writing(file: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    await rm(temporaryOf(file), { force: true }).catch(() => {});
    throw new RequestError(
      'badRequest',
      `${file} cannot be written: ${(error as NodeJS.ErrnoException).code === 'ENOENT' ? 'its folder does not exist' : whyNot(error)}`,
    );
  }
}

interface Ending {
  /** Prints what else stands above the footer. */
  beforeFooter?: (text: string) => Promise<void>;
  /** The footer, where it is not the usual one. */
  footerOf?: ((done: Done) => string) | undefined;
}

/** Runs one task and prints it: streamed text, or JSON lines. */
export async function runTask(
  line: CommandLine,
  client: Client,
  task: Task,
  options: GenerateOptions & { id: string },
  { beforeFooter, footerOf = footer }: Ending = {},
): Promise<Done> {
  const onChunk = (chunk: Chunk) => {
    if (line.json)
      printJson({
        type: 'chunk',
        id: options.id,
        text: chunk.text,
        tokenIds: chunk.tokenIds,
        logprobs: chunk.logprobs,
      });
    else process.stdout.write(chunk.text);
  };
  const done = await client.generate(task, { ...options, onChunk }).catch(async (error: unknown) => {
    throw await withRemedy(line, error);
  });
  if (line.json) printJson(doneLine(options.id, done));
  else {
    if (done.text) process.stdout.write('\n');
    // What is written for people goes with what qualifies it, also into a file; completions and raw text may be read by programs.
    const withNotes = task.kind === 'chat' || task.kind === 'summarize' || task.kind === 'summarizeFolder';
    for (const note of [...done.diagnostics, ...(done.finishReason === 'abort' ? ['stopped'] : [])])
      (withNotes ? process.stdout : process.stderr).write(`note: ${note}\n`);
  }
  await beforeFooter?.(done.text);
  if (!line.json) log(footerOf(done));
  return done;
}

/** What would answer all the same, for a text that has no room, in the command line's own words. */

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
    .replace(', which needs kvasir.cache.diskBytes above 0', ' with --keep DIR')
    .replace('kvasir.cache.diskBytes or ', '');
}

/** PURE. `numTokens`: of the longest text. */
export function remedyFor(code: 'diskFull' | 'writeFailed', config: ModelConfig, numTokens: number): string {
  const whole = `with about ${bytes(leastBudget(config, numTokens, 0))} of --max-bytes a text of up to ${count(numTokens)} tokens is read whole`;
  if (code === 'diskFull')
    return `--keep takes up to ${bytes(KEPT_BYTES)} of its folder's disk; ${whole}, without any of it.`;
  return `W${whole.slice(1)}, without --keep.`;
}
