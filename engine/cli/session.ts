/** One command's stay in the engine: load, do the work, close, whatever happens. */
import { rename, rm, writeFile } from 'node:fs/promises';
import { RequestError } from '../errors.ts';
import { type Chunk, Client, type GenerateOptions } from './client.ts';
import { type CommandLine, loadOptionsOf, text } from './options.ts';
import { doneLine, footer, log, printJson } from './output.ts';
import type { LoadOptions, ModelInfo, Task } from '../protocol.ts';

export async function withClient<T>(line: CommandLine, work: (client: Client, model: ModelInfo) => Promise<T>): Promise<T> {
  const client = new Client();
  let shown = performance.now();
  try {
    const options = loadOptionsOf(line);
    const model = await client.load(options, (stage, fraction) => {
      // A large model takes minutes to import: say so, at most every second.
      if (stage === 'import' && performance.now() - shown > 1000) {
        shown = performance.now();
        log(`importing the model: ${(100 * fraction).toFixed(0)}%`);
      }
    });
    if (options.compress) tellUnused(options.compress, model);
    const result = await work(client, model);
    const metrics = text(line, 'metrics');
    const trace = text(line, 'trace');
    if (metrics !== undefined) await writeWhole(metrics, await client.metrics());
    if (trace !== undefined) await writeWhole(trace, await client.trace());
    return result;
  } finally {
    await client.close();
  }
}

/** A codec that was asked for and loses too much with this model is not used. */
function tellUnused({ codec }: NonNullable<LoadOptions['compress']>, { compressed }: ModelInfo): void {
  const quality = compressed?.[0];
  if (!quality) log(`note: ${codec} is not used: the context is too short to measure what it loses`);
  else if (quality.klMean > quality.bound) log(`note: ${codec} is not used: with this model it loses too much (mean KL divergence ${quality.klMean.toFixed(3)}, at most ${quality.bound})`);
}

/** Whoever reads the file meanwhile, a collector for instance, finds the old text or the new one. */
async function writeWhole(file: string, content: string): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    await writeFile(temporary, content);
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw new RequestError('badRequest', `${file} cannot be written: ${(error as Error).message}`);
  }
}

/** Runs one task and prints it: streamed text, or JSON lines. Returns the text. */
export async function runTask(line: CommandLine, client: Client, task: Task, options: GenerateOptions & { id: string }): Promise<string> {
  const onChunk = (chunk: Chunk) => {
    if (line.json) printJson({ type: 'chunk', id: options.id, text: chunk.text, tokenIds: chunk.tokenIds, logprobs: chunk.logprobs });
    else process.stdout.write(chunk.text);
  };
  const done = await client.generate(task, { ...options, onChunk });
  if (line.json) printJson(doneLine(options.id, done));
  else {
    if (done.text) process.stdout.write('\n');
    // What is written for people goes with what qualifies it, also into a file; completions and raw text may be read by programs.
    const withNotes = task.kind === 'chat' || task.kind === 'summarize' || task.kind === 'summarizeFolder';
    for (const note of done.diagnostics) (withNotes ? process.stdout : process.stderr).write(`note: ${note}\n`);
    log(footer(done));
  }
  return done.text;
}
