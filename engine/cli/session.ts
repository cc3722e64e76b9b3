/**
 * Runs the work of a command with a loaded model, and prints the result of a task. Closes the engine in every case.
 * Does not parse options.
 */
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
import { type CommandLine, MAX_KEPT_BYTES, loadOptionsOf, samplingOf, text, texts } from './options.ts';
import { bytes, count, doneLine, footer, isOfModel, log, MODEL_NOTE, printJson } from './output.ts';

/** Checks the files that the options name, loads the model, runs `work` with it, and ends the engine. */
export async function withClient<T>(
  line: CommandLine,
  work: (client: Client, model: ModelInfo) => Promise<T>,
): Promise<T> {
  const client = new Client();
  let shown = performance.now();
  try {
    const options = loadOptionsOf(line);
    const trace = text(line, 'trace');
    // Files and folders are checked before the model is loaded.
    for (const file of [text(line, 'file'), ...texts(line, 'file'), ...texts(line, 'open-file')])
      if (file !== undefined) await checkTextFile(file);
    await checkFolder('--cache-dir', options.cacheDir);
    if (options.disk) await checkFolder('--kv-cache-dir', options.disk.dir, 0o700);
    if (trace !== undefined) await checkWritable(trace);
    const model = await client.load(options, (stage, fraction) => {
      // The import of a large model takes minutes, so progress is shown, at most every second.
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

/** Prints notes on options that have no effect or a limited effect. */
function tellLimits(line: CommandLine, options: LoadOptions, { name, contextTokens }: ModelInfo): void {
  if (options.contextTokens !== undefined && options.contextTokens > contextTokens)
    log(`note: --context ${options.contextTokens}: ${name} reads at most ${contextTokens} tokens`);
  const maxTokens = samplingOf(line).maxTokens ?? 0;
  if (maxTokens > contextTokens)
    log(`note: --max-tokens ${maxTokens}: prompt and answer together have at most ${contextTokens} tokens`);
  const isSingle = ['message', 'prompt', 'ids'].some((name) => text(line, name) !== undefined);
  if (options.compress !== undefined && isSingle)
    log(
      `note: --codec ${text(line, 'codec')} changes nothing in one answer: only KV rows idle for a minute are compressed`,
    );
}

/** Creates the folder if it is missing. @throws RequestError */
async function checkFolder(option: string, dir: string, mode?: number): Promise<void> {
  try {
    await makeFolders(dir, mode);
  } catch (error) {
    throw new RequestError('badRequest', `${option} ${dir}: ${whyNoFolder(error)}; choose another folder`);
  }
}

function whyNoFolder(error: unknown): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EEXIST':
    case 'ENOTDIR':
      return 'a file is in the way';
    case 'ENOENT':
      return 'no folder can be created there';
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

/** Writes a file by renaming, so that a reader finds the old file or the complete new one. */
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
  /** Prints more lines above the footer. */
  beforeFooter?: (text: string) => Promise<void>;
  /** Replaces the usual footer. */
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
        ...(chunk.reasoning === undefined ? {} : { reasoning: chunk.reasoning }),
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
    // In chat and summaries notes belong to the text, also in a file. Programs may read completions and raw text, so
    // their notes go to stderr.
    const withNotes = task.kind === 'chat' || task.kind === 'summarize' || task.kind === 'summarizeFolder';
    const notes = [...done.diagnostics, ...(done.finishReason === 'abort' ? ['stopped'] : [])];
    if (withNotes && done.text && isOfModel(done)) notes.unshift(MODEL_NOTE);
    for (const note of notes) (withNotes ? process.stdout : process.stderr).write(`note: ${note}\n`);
  }
  await beforeFooter?.(done.text);
  if (!line.json) log(footerOf(done));
  return done;
}

/**
 * Adds to an error about memory or disk what the user can do, with names of options. Returns other errors unchanged.
 */
export async function withRemedy(line: CommandLine, error: unknown): Promise<unknown> {
  if (!(error instanceof RequestError)) return error;
  const { code } = error;
  const message = inOptions(error.message);
  // The message already says how much memory is enough.
  if (code === 'outOfMemory') return new RequestError(code, message);
  if (code !== 'diskFull' && code !== 'writeFailed') return error;
  const { modelDir, native, contextTokens = Number.POSITIVE_INFINITY } = loadOptionsOf(line);
  const { model } = await inspectFolder(modelDir, native);
  const numTokens = Math.min(contextTokens, model.config.contextTokens);
  return new RequestError(code, `${message} ${remedyFor(code, model.config, numTokens, model.isNative)}`);
}

/** Replaces the names of settings of the editor by names of options. */
function inOptions(message: string): string {
  return message
    .replaceAll('kvasir.cache.maxBytes', '--max-bytes')
    .replace('To read in parts, kvasir.cache.diskBytes must be above 0.', 'To read in parts, give --kv-cache-dir DIR.')
    .replace('kvasir.cache.diskBytes or ', '');
}

/** What the user can do about an error of the disk. @param numTokens of the longest text */
export function remedyFor(
  code: 'diskFull' | 'writeFailed',
  config: ModelConfig,
  numTokens: number,
  hasOneLane: boolean,
): string {
  const needed = bytes(leastBudget(config, numTokens, 0, { hasOneLane }));
  const whole = `with --max-bytes of about ${needed}, a text of up to ${count(numTokens)} tokens fits in memory`;
  if (code === 'diskFull') return `--kv-cache-dir uses up to ${bytes(MAX_KEPT_BYTES)} of disk; ${whole}.`;
  return `Leave out --kv-cache-dir: ${whole}.`;
}
