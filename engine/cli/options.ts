/** Parses and checks the command line. Does not read files or run commands. */
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { CACHE_CODECS, compressOf, type LoadOptions } from '../protocol/messages.ts';
import type { Precision, SamplingParams } from '../protocol/tasks.ts';
import { defaultCacheDir } from './cliClient.ts';
import { OPTIONS, type Options } from './commandTable.ts';
import { builtInModelDir } from './modelArgument.ts';
import { UsageError } from './usageError.ts';

export interface CommandLine {
  positionals: string[];
  values: Record<string, string | boolean | (string | boolean)[] | undefined>;
  json: boolean;
}

export function parseCommandLine(command: string, args: string[]): CommandLine {
  const options = OPTIONS[command]!;
  let parsed: { positionals: string[]; values: CommandLine['values']; tokens: { kind: string; name?: string }[] };
  try {
    parsed = parseArgs({ args: joined(args, options), options, allowPositionals: true, strict: true, tokens: true });
  } catch (error) {
    const { message } = error as Error;
    const bare = /^Option '(?:-\w, )?(--[\w-]+)[^']*' argument (?:missing|is ambiguous)/.exec(message)?.[1];
    throw new UsageError(`${command}: ${bare ? `${bare} needs a value` : message.split('. ')[0]}`);
  }
  const { positionals, values, tokens } = parsed;
  const wanted = ['summarize', 'inspect', 'download'].includes(command) ? 1 : 0;
  if (positionals.length > wanted)
    throw new UsageError(
      `${command}: unexpected argument "${positionals[wanted]}"${command === 'chat' ? '; use --message for a question' : ''}`,
    );
  const names = tokens.flatMap(({ kind, name }) =>
    kind === 'option' && name !== undefined && options[name]?.type === 'string' && !options[name].multiple
      ? [name]
      : [],
  );
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) throw new UsageError(`${command}: --${twice} is given more than once`);
  return { positionals, values, json: values.json === true };
}

/** Whether the arguments contain `--help`, or a `-h` that is not the value of an option. */
export function asksForHelp(command: string, args: readonly string[]): boolean {
  const given = joined(args, OPTIONS[command]!);
  const end = given.indexOf('--');
  return (end < 0 ? given : given.slice(0, end)).some((arg) => arg === '--help' || arg === '-h');
}

/**
 * Joins a value that begins with a dash to its option (`--seed -5`, `--prompt -h`). The name of an option does not
 * count as a value, except in the form `--prompt=--json`.
 */
function joined(args: readonly string[], options: Options): string[] {
  const out: string[] = [];
  for (const [i, arg] of args.entries()) {
    const last = out.at(-1) ?? '';
    const takesValue = last.startsWith('--') && options[last.slice(2)]?.type === 'string';
    const isOption = arg === '--help' || (arg.startsWith('--') && Object.hasOwn(options, arg.slice(2).split('=')[0]!));
    if (takesValue && /^-./.test(arg) && !isOption) out[out.length - 1] = `${last}=${arg}`;
    // No options follow `--`.
    else if (arg === '--') return [...out, ...args.slice(i)];
    else out.push(arg);
  }
  return out;
}

export function text(line: CommandLine, name: string): string | undefined {
  const value = line.values[name];
  return typeof value === 'string' ? value : undefined;
}

export function required(line: CommandLine, name: string): string {
  const value = text(line, name);
  if (value === undefined) throw new UsageError(`--${name} is missing`);
  return value;
}

export function texts(line: CommandLine, name: string): string[] {
  const value = line.values[name];
  return Array.isArray(value) ? value.map(String) : [];
}

/** A number in [low, high]. Undefined if the option is not given. */
export function number(line: CommandLine, name: string, low: number, high: number, whole = true): number | undefined {
  const given = text(line, name);
  if (given === undefined) return undefined;
  const value = given.trim() === '' ? Number.NaN : Number(given);
  if (!(value >= low && value <= high) || (whole && !Number.isInteger(value)))
    throw new UsageError(
      `--${name} ${given}: it must be ${whole ? 'a whole number' : 'a number'} ` +
        `${high === Number.MAX_SAFE_INTEGER ? `of at least ${low}` : `from ${low} to ${high}`}`,
    );
  return value;
}

/** Number of threads. With 0 the engine measures which number is fastest. */
function threadsOf(line: CommandLine): number {
  const threads = number(line, 'threads', 0, MANY) ?? 0;
  const numProcessors = Math.max(cpus().length, availableParallelism());
  if (threads > numProcessors)
    throw new UsageError(
      `--threads ${threads}: this machine has ${numProcessors} ${numProcessors === 1 ? 'processor' : 'processors'}; ` +
        'use at most as many, or 0 to let the engine choose',
    );
  return threads;
}

/** Disk limit of --kv-cache-dir. */
export const MAX_KEPT_BYTES = 1e9;

const MANY = Number.MAX_SAFE_INTEGER;
/** At higher temperatures all tokens have about the same probability. */
const MAX_TEMPERATURE = 5;

export function samplingOf(line: CommandLine): SamplingParams {
  if (texts(line, 'stop').includes('')) throw new UsageError('--stop: the text is empty');
  const params: SamplingParams = {
    temperature: number(line, 'temperature', 0, MAX_TEMPERATURE, false),
    topP: number(line, 'top-p', 1e-6, 1, false),
    topK: number(line, 'top-k', 0, MANY),
    repetitionPenalty: number(line, 'repetition-penalty', 0.01, 100, false),
    seed: number(line, 'seed', 0, MANY),
    maxTokens: number(line, 'max-tokens', 1, MANY),
    topLogprobs: number(line, 'top-logprobs', 0, 100),
    stop: texts(line, 'stop').length ? texts(line, 'stop') : undefined,
    logprobs: line.json ? true : undefined,
  };
  for (const key of Object.keys(params) as (keyof SamplingParams)[]) if (params[key] === undefined) delete params[key];
  return params;
}

function choice<T extends string>(line: CommandLine, name: string, choices: readonly T[]): T | undefined {
  const given = text(line, name);
  if (given !== undefined && !choices.includes(given as T))
    throw new UsageError(`--${name} ${given}: expected one of ${choices.join(', ')}`);
  return given as T | undefined;
}

/** The folder for KV rows. Undefined if there is none. */
export function kvCacheDirOf(line: CommandLine): string | undefined {
  const dir = text(line, 'kv-cache-dir');
  if (dir === '') throw new UsageError('--kv-cache-dir is empty; name a folder, or leave the option out');
  return dir;
}

/** A name in --model must have become a path before (modelPath). */
export function loadOptionsOf(line: CommandLine): LoadOptions {
  const precision: Precision = choice(line, 'precision', ['int8', 'int4', 'float32']) ?? 'int8';
  const kv = choice(line, 'kv', ['int8', 'float32']);
  if (precision === 'float32' && kv === 'int8')
    throw new UsageError('--precision float32 needs --kv float32; `kvasir eval` measures int8 KV over float32 weights');
  const contextTokens = number(line, 'context', 16, MANY);
  const codec = choice(line, 'codec', CACHE_CODECS) ?? 'int8';
  const kvCacheDir = kvCacheDirOf(line);
  if (codec !== 'int8' && (precision === 'float32' || kv === 'float32'))
    throw new UsageError(`--codec ${codec}: float32 rows are not compressed; leave --codec out`);
  return {
    modelDir: text(line, 'model') ?? builtInModelDir(),
    cacheDir: text(line, 'cache-dir') ?? defaultCacheDir(),
    precision,
    maxBytes: number(line, 'max-bytes', 1, MANY) ?? 0,
    threads: threadsOf(line),
    ...(kv ? { kv } : {}),
    ...compressOf(codec),
    ...(contextTokens ? { contextTokens } : {}),
    ...(line.values.onnx === true ? { native: false } : {}),
    ...(line.values['reuse-shifted'] === true ? { reuseShifted: true } : {}),
    ...(kvCacheDir === undefined ? {} : { disk: { dir: kvCacheDir, maxBytes: MAX_KEPT_BYTES } }),
  };
}
