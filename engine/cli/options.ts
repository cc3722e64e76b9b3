/** What the command line says: options of all commands, their types and defaults, wrong usage. */
import { existsSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { RequestError } from '../protocol/errors.ts';
import { CACHE_CODECS, compressOf, type LoadOptions } from '../protocol/messages.ts';
import type { Precision, SamplingParams } from '../protocol/tasks.ts';
import { defaultCacheDir } from './cliClient.ts';

export class UsageError extends Error {}

const MODEL = {
  model: { type: 'string' },
  precision: { type: 'string' },
  threads: { type: 'string' },
  context: { type: 'string' },
  'max-bytes': { type: 'string' },
  'cache-dir': { type: 'string' },
  'reuse-shifted': { type: 'boolean' },
  keep: { type: 'string' },
  json: { type: 'boolean' },
} as const;
/** Where requests may be minutes apart: only what nobody has used for one is compressed. */
const STORE = { codec: { type: 'string' } } as const;
/** What is written at a session's end. */
const RECORDS = { trace: { type: 'string' } } as const;
const SAMPLING = {
  'max-tokens': { type: 'string' },
  temperature: { type: 'string' },
  'top-p': { type: 'string' },
  'top-k': { type: 'string' },
  'min-p': { type: 'string' },
  'repetition-penalty': { type: 'string' },
  seed: { type: 'string' },
  stop: { type: 'string', multiple: true },
  'ignore-eos': { type: 'boolean' },
  'top-logprobs': { type: 'string' },
} as const;

type Options = NonNullable<ParseArgsConfig['options']>;

const COMMANDS = {
  demo: { ...MODEL, ...RECORDS, file: { type: 'string' } },
  generate: {
    ...MODEL,
    ...STORE,
    ...RECORDS,
    ...SAMPLING,
    prompt: { type: 'string' },
    ids: { type: 'string' },
    requests: { type: 'string' },
    kv: { type: 'string' },
  },
  complete: {
    ...MODEL,
    ...RECORDS,
    ...SAMPLING,
    file: { type: 'string' },
    line: { type: 'string' },
    column: { type: 'string' },
    beside: { type: 'string', multiple: true },
    n: { type: 'string' },
  },
  chat: {
    ...MODEL,
    ...STORE,
    ...RECORDS,
    ...SAMPLING,
    file: { type: 'string', multiple: true },
    message: { type: 'string' },
  },
  summarize: { ...MODEL, ...RECORDS, ...SAMPLING, symbol: { type: 'string' } },
  eval: { ...MODEL, text: { type: 'string' }, kv: { type: 'string' }, shifted: { type: 'boolean' } },
  inspect: { model: { type: 'string' }, json: { type: 'boolean' } },
} as const satisfies Record<string, Options>;
const OPTIONS: Record<string, Options> = COMMANDS;
type Command = keyof typeof COMMANDS;
type Option = { [C in Command]: keyof (typeof COMMANDS)[C] }[Command];

/** Each with what its value is called, if it takes one, and what it does; in some commands that is something else. */
const DESCRIBED: Record<Option, [value: string, words: string, inCommand?: Partial<Record<Command, string>>]> = {
  model: ['DIR', 'a model folder; the built-in model when left out'],
  precision: ['P', 'bits of the weights: int8 (usual), int4 or float32'],
  threads: ['N', 'processors to use; 0 is as many as are best'],
  context: ['TOKENS', 'reads no more than this, prompt and answer together'],
  'max-bytes': ['BYTES', 'the most memory for the KV cache; a share of what is free when left out'],
  'cache-dir': ['DIR', 'where converted weights are kept'],
  'reuse-shifted': ['', 'behind an edit, takes over what was computed of the text before (an approximation)'],
  keep: ['DIR', 'keeps there what is computed of files, for later runs'],
  json: ['', 'prints one JSON object a line'],
  codec: ['CODEC', 'how what nobody has used for a minute is kept in memory'],
  trace: ['FILE', "writes the engine's last steps there at the end, as a Chrome trace"],
  'max-tokens': ['N', 'the longest answer'],
  temperature: ['T', 'how freely words are chosen; 0 always takes the likeliest'],
  'top-p': ['P', 'chooses among the likeliest that together have this probability'],
  'top-k': ['K', 'chooses among this many of the likeliest; 0 is no limit'],
  'min-p': ['P', "chooses among those with at least this share of the likeliest one's probability"],
  'repetition-penalty': ['R', 'above 1, what was said becomes less likely'],
  seed: ['N', 'the same choices for the same number'],
  stop: ['TEXT', 'ends before this text; may be given again'],
  'ignore-eos': ['', 'goes on where the model would end'],
  'top-logprobs': ['K', 'with --json, the K likeliest tokens at each place'],
  file: [
    'F',
    'the source file',
    {
      chat: 'a source file that the questions are about; may be given again',
      demo: 'the source file; one of its own when left out',
    },
  ],
  line: ['L', 'of the cursor, counted from 1'],
  column: ['C', 'of the cursor, counted from 1, as editors count'],
  beside: ['F', 'a file that is open, too, and may be copied from; may be given again'],
  n: ['K', 'up to K different candidates'],
  message: ['M', 'the question; a conversation when left out'],
  symbol: ['S', 'the function or class to summarize'],
  prompt: ['TEXT', 'the text to go on from'],
  ids: ['1,2,3', 'the same, as token ids'],
  requests: ['FILE', 'many, one JSON object a line, run together'],
  kv: [
    'NAMES',
    'how rows are kept: int8 (usual) or float32',
    { eval: 'what is measured: int8 (usual), codecs such as int4-kivi,nvfp4, or all' },
  ],
  text: ['FILE', 'the text to measure on'],
  shifted: ['', 'measures what --reuse-shifted costs'],
};

export const HELP = `kvasir: a code assistant's engine on the command line

  kvasir demo [--file F]                                    a completion, a chat and a summary of one file at once
  kvasir complete --file F --line L --column C [--n K]      fill in the middle (1-based; columns as editors count)
                  [--beside F]...                           with these files open, too, the likeliest to copy from first
  kvasir chat [--file F]... [--message M]                   one turn, or a conversation
  kvasir summarize PATH [--symbol S]                        a file, one symbol of it, or a folder
  kvasir generate (--prompt TEXT | --ids 1,2,3 | --requests FILE.jsonl)
                                                            goes on from raw text, without what makes a model answer
  kvasir eval --text FILE [--kv int8]                       what compression costs, against float32
  kvasir eval --text FILE --kv (all | int4-kivi,nvfp4,...)  what it costs to keep it compressed: next tokens, lines, answers
  kvasir eval --text FILE --shifted                         what --reuse-shifted costs behind edits of the file
  kvasir inspect [DIR | --model DIR]                        what a model folder is, or why it cannot run

Model: --model DIR (default: the built-in one), --precision int8|int4|float32, --threads N, --context TOKENS,
       --max-bytes BYTES of KV cache, --cache-dir DIR for imported models, --keep DIR: what is computed of files stays
       there (1 GB at most) and is found by the next run with the same --max-bytes; as private as the files (of 64 tokens
       or more; a completion keeps what it has read before the cursor, by segments of 256; nothing of .env files and
       keys), --reuse-shifted: after an edit, what the unchanged text behind it had computed is taken over until idle time
       has computed it anew (an approximation).
Store (chat, generate): --codec ${CACHE_CODECS.join('|')}: what nobody has used for a minute is
       kept in fewer bits, with kvzip fewer rows too, where the model bears it; auto: once three quarters of the memory
       are taken, 4 bits after five minutes, 2 to 4 by layer (turboquant) after half an hour, or after ten minutes if
       nine tenths are taken.
Sampling: --max-tokens N, --temperature T, --top-p P, --top-k K, --min-p P, --repetition-penalty R, --seed N,
       --stop TEXT (repeatable), --ignore-eos, --top-logprobs K.
At the end: --trace FILE writes the engine's last steps as a Chrome trace (ui.perfetto.dev).
--json prints one JSON object a line. Exit status: 0 done, 1 failed, 2 wrong usage.
`;

/** Of one command: its own lines, then what goes for all. */
export function helpOf(command: string): string {
  // A line that is indented deeper goes on from the one above.
  const own = HELP.split(/\n(?! {4})/).filter((lines) => new RegExp(`^  kvasir ${command}\\b`).test(lines));
  const lines = Object.keys(OPTIONS[command]!).map((name) => {
    const [value, words, inCommand] = DESCRIBED[name as Option];
    return `  ${`--${name} ${value}`.padEnd(24)}  ${inCommand?.[command as Command] ?? words}`;
  });
  return `${own.join('\n')}\n\nOptions:\n${lines.join('\n')}\n(more on them: kvasir help)\n`;
}

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
  const wanted = command === 'summarize' || command === 'inspect' ? 1 : 0;
  if (positionals.length > wanted)
    throw new UsageError(
      `${command}: unexpected argument "${positionals[wanted]}"${command === 'chat' ? '; a question goes with --message' : ''}`,
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

/** Whether a command is asked what it does rather than to do it: `--help` anywhere, or `-h` that is no option's value. */
export function asksForHelp(command: string, args: readonly string[]): boolean {
  const given = joined(args, OPTIONS[command]!);
  const end = given.indexOf('--');
  return (end < 0 ? given : given.slice(0, end)).some((arg) => arg === '--help' || arg === '-h');
}

/** A value that begins with a dash (`--seed -5`, `--prompt -h`) goes with its option; what is an option's whole name is none, but as `--prompt=--json`. */
function joined(args: readonly string[], options: NonNullable<ParseArgsConfig['options']>): string[] {
  const out: string[] = [];
  for (const [i, arg] of args.entries()) {
    const last = out.at(-1) ?? '';
    const takesValue = last.startsWith('--') && options[last.slice(2)]?.type === 'string';
    const isOption = arg === '--help' || (arg.startsWith('--') && Object.hasOwn(options, arg.slice(2).split('=')[0]!));
    if (takesValue && /^-./.test(arg) && !isOption) out[out.length - 1] = `${last}=${arg}`;
    // Behind it there are no options.
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

/** A number within [low, high], or undefined when not given. */
export function number(line: CommandLine, name: string, low: number, high: number, whole = true): number | undefined {
  const given = text(line, name);
  if (given === undefined) return undefined;
  const value = given.trim() === '' ? Number.NaN : Number(given);
  if (!(value >= low && value <= high) || (whole && !Number.isInteger(value)))
    throw new UsageError(
      `--${name} ${given}: it must be ${whole ? 'a whole number' : 'a number'} ${high === Number.MAX_SAFE_INTEGER ? `of at least ${low}` : `from ${low} to ${high}`}`,
    );
  return value;
}

/** 0: as many as are measured to be best. */
function threadsOf(line: CommandLine): number {
  const threads = number(line, 'threads', 0, MANY) ?? 0;
  const numProcessors = Math.max(cpus().length, availableParallelism());
  if (threads > numProcessors)
    throw new UsageError(
      `--threads ${threads}: this machine has ${numProcessors} ${numProcessors === 1 ? 'processor' : 'processors'}; name at most as many, or 0 for as many as are best`,
    );
  return threads;
}

/** Of what --keep keeps. */
export const KEPT_BYTES = 1e9;

const MANY = Number.MAX_SAFE_INTEGER;
/** Beyond it all tokens are about as probable. */
const HOTTEST = 5;

export function samplingOf(line: CommandLine): SamplingParams {
  if (texts(line, 'stop').includes(''))
    throw new UsageError('--stop: a text is needed; an empty one stands everywhere');
  const params: SamplingParams = {
    temperature: number(line, 'temperature', 0, HOTTEST, false),
    topP: number(line, 'top-p', 1e-6, 1, false),
    topK: number(line, 'top-k', 0, MANY),
    minP: number(line, 'min-p', 0, 1, false),
    repetitionPenalty: number(line, 'repetition-penalty', 0.01, 100, false),
    seed: number(line, 'seed', 0, MANY),
    maxTokens: number(line, 'max-tokens', 1, MANY),
    topLogprobs: number(line, 'top-logprobs', 0, 100),
    stop: texts(line, 'stop').length ? texts(line, 'stop') : undefined,
    ignoreEos: line.values['ignore-eos'] === true ? true : undefined,
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

/** What is kept of files, for later runs; undefined: nothing. */
export function keepDirOf(line: CommandLine): string | undefined {
  const dir = text(line, 'keep');
  if (dir === '') throw new UsageError('--keep is an empty text; name a folder, or leave it out to keep nothing');
  return dir;
}

/** The built-in model lies beside dist/, in the checkout as in the packaged extension. */
function builtInModelDir(): string {
  return join(__dirname, '..', 'model');
}

/** @throws RequestError for the name of a model on the Hugging Face hub: nothing is downloaded here. */
export function modelDirOf(given: string | undefined): string {
  if (given === '') throw new UsageError('the model folder is an empty text; leave it out for the built-in model');
  if (given !== undefined && !existsSync(given) && /^[\w.-]+\/[\w.-]+$/.test(given))
    throw new RequestError(
      'badRequest',
      `${given}: no such folder. If that is a model of the Hugging Face hub, \`hf download ${given}\` fetches it and prints its folder, which is to be named here (pip install -U huggingface_hub)`,
    );
  return given ?? builtInModelDir();
}

export function loadOptionsOf(line: CommandLine): LoadOptions {
  const precision: Precision = choice(line, 'precision', ['int8', 'int4', 'float32']) ?? 'int8';
  const kv = choice(line, 'kv', ['int8', 'float32']);
  if (precision === 'float32' && kv === 'int8')
    throw new UsageError(
      '--precision float32 is the reference and implies --kv float32; `kvasir eval` measures int8 KV over float32 weights',
    );
  const contextTokens = number(line, 'context', 16, MANY);
  const codec = choice(line, 'codec', CACHE_CODECS) ?? 'int8';
  const keepDir = keepDirOf(line);
  if (codec !== 'int8' && (precision === 'float32' || kv === 'float32'))
    throw new UsageError(`--codec ${codec}: rows in float32 are not compressed`);
  return {
    modelDir: modelDirOf(text(line, 'model')),
    cacheDir: text(line, 'cache-dir') ?? defaultCacheDir(),
    precision,
    maxBytes: number(line, 'max-bytes', 1, MANY) ?? 0,
    threads: threadsOf(line),
    ...(kv ? { kv } : {}),
    ...compressOf(codec),
    ...(contextTokens ? { contextTokens } : {}),
    ...(line.values['reuse-shifted'] === true ? { reuseShifted: true } : {}),
    ...(keepDir === undefined ? {} : { disk: { dir: keepDir, maxBytes: KEPT_BYTES } }),
  };
}
