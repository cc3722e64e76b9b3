/** The options of each command, and their help. Does not parse the command line. */
import type { ParseArgsConfig } from 'node:util';
import { CACHE_CODECS } from '../protocol/messages.ts';

const MODEL = {
  model: { type: 'string' },
  precision: { type: 'string' },
  onnx: { type: 'boolean' },
  threads: { type: 'string' },
  context: { type: 'string' },
  'max-bytes': { type: 'string' },
  'cache-dir': { type: 'string' },
  'reuse-shifted': { type: 'boolean' },
  'kv-cache-dir': { type: 'string' },
  json: { type: 'boolean' },
} as const;
/** For commands whose requests may be minutes apart, because only idle KV rows are compressed. */
const STORE = { codec: { type: 'string' } } as const;
/** For files that are written when the command ends. */
const RECORDS = { trace: { type: 'string' } } as const;
const SAMPLING = {
  'max-tokens': { type: 'string' },
  temperature: { type: 'string' },
  'top-p': { type: 'string' },
  'top-k': { type: 'string' },
  'repetition-penalty': { type: 'string' },
  seed: { type: 'string' },
  stop: { type: 'string', multiple: true },
  'top-logprobs': { type: 'string' },
} as const;

export type Options = NonNullable<ParseArgsConfig['options']>;

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
    'open-file': { type: 'string', multiple: true },
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
  eval: { ...MODEL, text: { type: 'string' }, kv: { type: 'string' } },
  models: { folder: { type: 'string', multiple: true }, json: { type: 'boolean' } },
  inspect: { model: { type: 'string' }, onnx: { type: 'boolean' }, json: { type: 'boolean' } },
  download: { file: { type: 'string' }, revision: { type: 'string' }, json: { type: 'boolean' } },
} as const satisfies Record<string, Options>;
export const OPTIONS: Record<string, Options> = COMMANDS;
type Command = keyof typeof COMMANDS;
type Option = { [C in Command]: keyof (typeof COMMANDS)[C] }[Command];

/** For each option the name of its value ('' for a switch), and its help, with exceptions by command. */
const DESCRIBED: Record<Option, [value: string, words: string, inCommand?: Partial<Record<Command, string>>]> = {
  model: ['M', 'folder, GGUF file or name (`kvasir models`); default: the built-in model'],
  precision: ['P', 'precision of the weights: int8 (default), int4 or float32'],
  onnx: ['', 'compute with onnxruntime instead of the native kernels'],
  threads: ['N', 'threads to compute with; 0 (default): as many as are fastest'],
  context: ['TOKENS', "context limit, prompt and answer together; default: the model's own"],
  'max-bytes': ['BYTES', 'memory budget of the KV cache; default: a share of the free memory'],
  'cache-dir': ['DIR', 'folder for converted weights'],
  'reuse-shifted': ['', 'reuse KV rows of text that an edit has moved (an approximation)'],
  'kv-cache-dir': ['DIR', 'keep KV rows of files in this folder for later runs, 1 GB at most'],
  json: ['', 'print one JSON object per line'],
  codec: ['CODEC', `compression for KV rows idle for over 1 min: ${CACHE_CODECS.join(', ')}`],
  trace: ['FILE', "write the engine's last steps as a Chrome trace, for ui.perfetto.dev"],
  'max-tokens': ['N', 'length limit of the answer'],
  temperature: ['T', 'randomness; 0 (default) always takes the most probable token'],
  'top-p': ['P', 'sample from the most probable tokens that together reach P'],
  'top-k': ['K', 'sample from the K most probable tokens; 0: no limit'],
  'repetition-penalty': ['R', 'above 1: make tokens that were already used less probable'],
  seed: ['N', 'seed of the random choices'],
  stop: ['TEXT', 'end before this text; may be given several times'],
  'top-logprobs': ['K', 'with --json: the K most probable tokens at each position'],
  file: [
    'F',
    'source file',
    {
      chat: 'source file that the questions are about; may be given several times',
      demo: 'source file; default: a file of this project',
      download: 'which file: its name, a format such as Q8_0, or safetensors',
    },
  ],
  folder: ['DIR', 'look here, too; may be given several times'],
  revision: ['REV', 'branch, tag or commit; default: main'],
  line: ['L', 'line of the cursor, from 1'],
  column: ['C', 'column of the cursor, from 1, as editors count'],
  'open-file': ['F', 'another open file to copy from; may be given several times, most important first'],
  n: ['K', 'print up to K different candidates'],
  message: ['M', 'the question; without it, a conversation; "/anyway M" asks a model that is too small, too'],
  symbol: ['S', 'function or class to summarize'],
  prompt: ['TEXT', 'text to continue'],
  ids: ['1,2,3', 'text to continue, as token ids'],
  requests: ['FILE', 'JSON lines, one request each, run together: {"prompt": "..."}'],
  kv: [
    'NAMES',
    'precision of the KV rows: int8 (default) or float32',
    { eval: 'what to measure: int8 (default), codecs such as int4-kivi,nvfp4, or all' },
  ],
  text: ['FILE', 'text to measure on'],
};

export const HELP = `kvasir: a code assistant's engine on the command line

  kvasir demo [--file F]                                 complete, ask about and summarize one file, all at once
  kvasir complete --file F --line L --column C           complete code at a position
  kvasir chat [--file F]... [--message M]                answer a question, or hold a conversation
  kvasir summarize PATH [--symbol S]                     summarize a file, one symbol of it, or a folder
  kvasir generate (--prompt T | --ids I | --requests F)  continue raw text, without a chat template
  kvasir eval --text F [--kv NAMES]                      measure what lower precision costs on a text
  kvasir models [--folder DIR]...                        list the models of this machine, also those of Ollama
  kvasir inspect [M | --model M]                         show what a model can do, or why it cannot run
  kvasir download OWNER/NAME [--file F]                  download a model from the Hugging Face hub

"kvasir help COMMAND" lists the options of a command.
Exit status: 0 done, 1 failed, 2 wrong usage.
`;

/** The usage line of one command and its options. */
export function helpOf(command: string): string {
  const usage = HELP.split('\n').filter((line) => line.startsWith(`  kvasir ${command} `));
  const lines = Object.keys(OPTIONS[command]!).map((name) => {
    const [value, words, inCommand] = DESCRIBED[name as Option];
    return `  ${`--${name} ${value}`.padEnd(24)}  ${inCommand?.[command as Command] ?? words}`;
  });
  return `${usage.join('\n')}\n\nOptions:\n${lines.join('\n')}\n`;
}
