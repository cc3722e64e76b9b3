/**
 * The whole contract between the host (editor or command line) and the engine: every message, plain data only.
 * The one engine file that src/ may import. Rules:
 * - Both sides compare PROTOCOL_VERSION before anything else.
 * - Every host message with a `requestId` is answered: `generate` by any number of `chunk` and exactly one `done` or
 *   `error`; the others by exactly one `reply` or `error`.
 * - The engine mirrors the documents: `generate` names a document and a position, never a rendered prompt.
 * - Offsets are UTF-16 code units of the document's text as the host holds it; times are milliseconds; sizes are bytes.
 */
export const PROTOCOL_VERSION = 4;

/** Characters of another file that completions copy from, from its beginning on. */
export const MOST_COPIED = 24_576;

export type Precision = 'int4' | 'int8' | 'float32';
/** Precision of the resident KV window. */
export type KvPrecision = 'int8' | 'float32';
/** Scheduling class, highest first. `idle` is the engine's own: file blocks computed while nothing else runs. */
export type Priority = 'completion' | 'chat' | 'summary' | 'idle';
export type FinishReason = 'stop' | 'length' | 'abort';

export type ErrorCode =
  | 'badRequest'
  | 'contextTooLong'
  | 'outOfMemory'
  /** A text that is kept on the disk as it is read has no room there. */
  | 'diskFull'
  | 'readFailed'
  /** It cannot be written to that disk, full or not. */
  | 'writeFailed'
  | 'unknownDocument'
  | 'modelInvalid'
  | 'modelUnsupported'
  | 'notLoaded'
  | 'engineFailed';

/** How tokens are chosen. Every field left out takes the task's default. */
export interface SamplingParams {
  /** 0 is greedy. */
  temperature?: number;
  topP?: number;
  topK?: number;
  /** Drops tokens less probable than minP times the most probable one. */
  minP?: number;
  /** 1 is none; divides positive and multiplies negative logits of tokens already in the sequence. */
  repetitionPenalty?: number;
  seed?: number;
  maxTokens?: number;
  /** Text that ends the generation; never part of the result. */
  stop?: string[];
  /** Goes on past the model's end tokens. */
  ignoreEos?: boolean;
  /** Whether each token's log-probability is reported: they take time. Asking for alternatives implies it. */
  logprobs?: boolean;
  /** Number of alternatives reported per token; 0 is none. */
  topLogprobs?: number;
}

/**
 * How the index-th of several completions at one place is sampled: the first, 0, is greedy, and the one that is offered
 * alone; the others are drawn, each with a seed of its own, so that asking again gives the same. Send a `generate` for
 * each, with the same task and all at once: their prompt is computed once. Leave out empty and equal results.
 */
export function candidateSampling(index: number, given: SamplingParams = {}): SamplingParams {
  return index === 0 ? given : { temperature: 0.8, topP: 0.95, ...given, seed: (given.seed ?? 0) + index };
}

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

/** A piece of text of another place that may help; offered in the volatile tail. */
export interface Snippet {
  path: string;
  text: string;
  /** Line of the file that it starts on, from 0; left out where that says nothing. */
  startLine?: number;
}

export type Task =
  | { kind: 'raw'; prompt: string | number[] }
  | {
      kind: 'complete';
      docId: string;
      offset: number;
      /** Text taken as already inserted at `offset`, with the cursor behind it: the completion after one that is accepted. */
      inserted?: string;
      /** Whether the text may go on below the line; decided by what is around the cursor when left out. */
      multiline?: boolean;
      snippets?: Snippet[];
      /** Other documents and sources that it may copy from, the likeliest first; those that the engine does not have are left out. */
      copyFrom?: string[];
      /** Shows it, too, where the model is not sure: the user has asked for it. `line`: further lines only where it is sure, for what is drawn and not the most probable text. */
      unsure?: boolean | 'line';
    }
  | ChatTask
  | SummarizeTask
  | {
      kind: 'summarizeFolder';
      path: string;
      docIds: string[] /** Of these, relative to the folder; else as the engine names documents. */;
      paths?: string[] /** Of files whose summaries the host has. */;
      summaries?: { path: string; text: string }[];
    }
  /** New text for a range of a document. */
  | { kind: 'edit'; docId: string; range: { start: number; end: number }; instruction: string }
  /** `diff` is unified; `subjects` are the first lines of recent commits, newest first: the project's habits. */
  | { kind: 'commitMessage'; diff: string; subjects?: string[] };

export interface ChatTask {
  kind: 'chat';
  messages: ChatMessage[];
  /** The first is the shared file block, the others enter the tail. */
  docIds: string[];
  /** In the first document: which part of a large file is shown. */
  cursor?: number;
  /** In the tail: selections (with `startLine`) behind the last question, files that are not open behind the first. */
  snippets?: Snippet[];
}

export interface SummarizeTask {
  kind: 'summarize';
  docId: string;
  /** A symbol's or selection's range and name; none is the whole file. */
  range?: { start: number; end: number; label?: string };
}

/** Replaces [start, end) of the text before the message's first edit by `text`; edits are ordered last to first and do not overlap. */
export interface TextEdit {
  start: number;
  end: number;
  text: string;
}

export interface LoadOptions {
  modelDir: string;
  /** Where imported models are kept; made if missing. */
  cacheDir: string;
  precision: Precision;
  /** int8 when left out, float32 with float32 weights. */
  kv?: KvPrecision;
  /** Ceiling of window, store, the prefill lane's scratch and buffers of the disk tier, of all engines in `enginesDir` together; 0 lets the engine choose. */
  maxBytes: number;
  /** Share of the available memory that the engine chooses then, 0..1; the usual one when left out. */
  memoryShare?: number;
  /** 0 lets the engine choose. */
  threads: number;
  /** Longest sequence; the model's own limit when left out, never more than that. */
  contextTokens?: number;
  /**
   * Whether, behind an edit, a request may take tokens over that an older version of its file has computed, turned to their
   * new positions, until idle time has computed them anew. An approximation: only where measuring says that this model bears it.
   */
  reuseShifted?: boolean;
  /** How what is long out of use is compressed with loss; nothing is when left out. */
  compress?: LossyCodec;
  /** Folder for what is kept of the cache on disk, and its most bytes; nothing is kept without it. */
  disk?: { dir: string; maxBytes: number };
  /** Folder in which engines tell each other that they are at work, to share one ceiling; made if missing. Without it this one has the ceiling to itself. */
  enginesDir?: string;
}

/**
 * Of the store, and how it is chosen; the names of settings and command line. "int8" loses nothing; "auto" compresses when memory is
 * short, each run with what its age and the fullness of the budget call for; the others compress whatever is long out of use.
 */
export const CACHE_CODECS = [
  'int8',
  'auto',
  'fp8',
  'int4',
  'int4-kivi',
  'nvfp4',
  'kvquant3',
  'turboquant',
  'kvzip',
] as const;
export type CacheCodec = (typeof CACHE_CODECS)[number];
type LossyCodec = Exclude<CacheCodec, 'int8'>;

export function compressOf(codec: CacheCodec): Pick<LoadOptions, 'compress'> {
  return codec === 'int8' ? {} : { compress: codec };
}

/** What taking over costs, measured once per model on edits of a sample: against the exact rows, over the tokens after it. */
export interface ShiftQuality {
  /** KL divergence, in nats. */
  klMean: number;
  klMax: number;
  /** Share of positions with the same most probable token, 0..1. */
  top1: number;
  /** Mean KL divergence up to which it is used. */
  bound: number;
  numTokens: number;
}

/** What compressing the store costs, measured once per model and codec on a sample: against the rows as they were, over the tokens after them. */
export interface CodecQuality {
  codec: string;
  /** KL divergence, in nats. */
  klMean: number;
  klMax: number;
  /** Share of positions with the same most probable token, 0..1. */
  top1: number;
  /** Mean KL divergence up to which it is used. */
  bound: number;
  numTokens: number;
  /** Of a long text. */
  bytesPerToken: number;
  /** How many times smaller that is than float16. */
  compression: number;
}

export interface ModelInfo {
  name: string;
  /** "qwen3", "qwen2" or "llama". */
  architecture: string;
  parameters: number;
  precision: Precision;
  kv: KvPrecision;
  contextTokens: number;
  vocabSize: number;
  weightsBytes: number;
  /** Of them, what stays in memory: all but an embedding of which rows are looked up in the file. */
  residentBytes: number;
  kvBytesPerToken: number;
  /** That a step runs on. */
  threads: number;
  loadMs: number;
  /** False when the imported files were already in the cache folder. */
  imported: boolean;
  canComplete: boolean;
  canChat: boolean;
  /** Follows instructions well enough to change code and to write commit messages. */
  canEdit: boolean;
  /** Whether it reads snippets of other files in a completion. */
  readsSnippets: boolean;
  /** Whether completions copy from other files. */
  copiesFiles: boolean;
  /** What the model says of itself (manifest), in each language that the user interface has; both empty, or neither. */
  note: { en: string; pt: string };
  /** The same, of the answers that it writes in the chat. */
  chatNote: { en: string; pt: string };
  /** Left out where position-shifted reuse was not asked for, or this precision has none; it is in use where `klMean` is within the bound. */
  shifted?: ShiftQuality;
  /** Left out where nothing is compressed: of each codec that is to be used, mildest first; where rows are let go of files, then of long conversations. Each is in use where its `klMean` is within the bound. */
  compressed?: readonly CodecQuality[];
}

export type HostMessage =
  | ({ type: 'load'; requestId: string } & LoadOptions)
  | { type: 'unload'; requestId: string }
  /** The user's language, such as "pt-br", for numbers, and translations of the engine's sentences, by the English text; before everything else. English without it. */
  | { type: 'language'; language: string; texts: Record<string, string> }
  | {
      type: 'configure' /** 0 lets the engine choose. */;
      maxBytes?: number /** Of the available memory, then. */;
      memoryShare?: number /** Whether file blocks may be computed while idle. */;
      idleWork?: boolean;
    }
  | {
      type: 'generate';
      requestId: string;
      task: Task;
      priority: Priority;
      sampling?: SamplingParams /** Those of one client share what one is due beside others of their class (see fairness); a client of its own when left out. */;
      clientId?: string;
    }
  | { type: 'abort'; requestId: string }
  /** Somebody waits for it now, or nobody any more. */
  | { type: 'prioritise'; requestId: string; priority: Priority }
  | {
      type: 'documentChanged';
      docId: string;
      version: number /** As the editor shows it; the engine keeps the last two parts. */;
      path: string;
      text: string /** The editor's name of it, where the path does not tell: untitled files, cells of a notebook. */;
      language?: string /** Nothing of it is written to the disk, ever. */;
      secret?: boolean /** Nothing of this text is, until it is saved. */;
      unsaved?: boolean;
    }
  | { type: 'documentChanged'; docId: string; version: number; edits: TextEdit[]; unsaved?: boolean }
  /** Its text has been saved as it is; `saved` false: it turns out that it is not. */
  | { type: 'documentSaved'; docId: string; saved: boolean }
  | { type: 'documentClosed'; docId: string }
  /** A file that nobody has open, for completions to copy from (`copyFrom`) and for nothing else: none of it is computed or kept. It has the docId of no document. */
  | { type: 'sourceChanged'; docId: string; path: string; text: string }
  | { type: 'sourceClosed'; docId: string }
  /** Of a text, or of a mirrored document's file block. */
  | { type: 'countTokens'; requestId: string; text: string }
  | { type: 'countTokens'; requestId: string; docId: string }
  /** What a question's prompt would take, part by part, without running it. */
  | { type: 'measure'; requestId: string; task: ChatTask | SummarizeTask; sampling?: SamplingParams }
  /** What a model folder is, without loading it; needs no model. */
  | { type: 'inspect'; requestId: string; modelDir: string }
  /**
   * Memory, processors and battery of this machine; needs no model. Its graphics, too, unless `graphics` is false: listing
   * them may take a second. `speed` also measures how fast memory is read.
   */
  | { type: 'machine'; requestId: string; graphics?: boolean; speed?: boolean }
  /** The last steps as a Chrome trace. */
  | { type: 'trace'; requestId: string }
  /** The figures of `stats` in Prometheus' text format. */
  | { type: 'metrics'; requestId: string }
  | { type: 'pin'; docId: string; pinned: boolean }
  /** Drops a document's unreferenced KV, or all of it, in memory and on disk, there that of other models, too. */
  | { type: 'evict'; docId: string /** What is on disk stays. */; memoryOnly?: boolean }
  | { type: 'evict' /** What is pinned, too. */; pinned?: boolean }
  /** Answered when no request is waiting or running and idle work has ended. */
  | { type: 'flush'; requestId: string }
  /** `tree` asks for the prefix tree, too. */
  | { type: 'stats'; requestId: string; tree?: boolean }
  | { type: 'shutdown'; requestId: string };

export interface TokenLogprob {
  tokenId: number;
  logprob: number;
}

export interface Usage {
  promptTokens: number;
  /** Prompt tokens whose KV was found in the cache. */
  cachedTokens: number;
  completionTokens: number;
  /** Prompt tokens that belong to the shared file block. */
  blockTokens: number;
  /** Cached tokens that were taken over from where they stood before an edit, an approximation; left out where there are none. */
  shiftedTokens?: number;
  /** The context was longer than memory: each token attended to parts of it. */
  inParts?: boolean;
}

export interface Timings {
  /** Arrival to first step. */
  queueMs: number;
  /** Arrival to first token. */
  ttftMs: number;
  /** Mean time per output token after the first; 0 when there is at most one. */
  tpotMs: number;
}

/**
 * `files`: read off the attached files, whose lines the text names, or said of what is in them at all; `stock`: what is always said, in the place of
 * what the model has written or in reply to a greeting.
 */
export type AnswerSource = 'files' | 'stock';

export type EngineMessage =
  | { type: 'ready'; version: number }
  | { type: 'loadProgress'; requestId: string; stage: 'import' | 'session'; fraction: number }
  /** A request made of several sequences: how many of them have ended. */
  | { type: 'progress'; requestId: string; numDone: number; numTotal: number }
  | {
      type: 'chunk';
      requestId: string;
      text: string;
      tokenIds: number[] /** Empty unless asked for, or what is shown depends on them; here and in `done`. */;
      logprobs: number[];
    }
  | {
      type: 'done';
      requestId: string;
      finishReason: FinishReason;
      /** The chunks together. */
      text: string;
      /** All that were generated: a completion's may begin with those of text before the cursor, which is said again (see healing). */
      tokenIds: number[];
      logprobs: number[];
      topLogprobs?: TokenLogprob[][];
      usage: Usage;
      timings: Timings;
      /** What the user should know of this answer: text left out, a reason nothing is shown. */
      diagnostics: string[];
      /** The model has written more that it is not sure enough of. */
      heldBack?: true;
      /** Who has it to say, if not the model, which was not even asked where the prompt has no tokens. */
      source?: AnswerSource;
    }
  | { type: 'reply'; requestId: string; value: ReplyValue }
  /** For the log: something is not as it should be, and nothing is lost by it. */
  | { type: 'log'; message: string }
  /** Without requestId: the engine itself; pending requests have each had their own `error`. */
  | { type: 'error'; requestId?: string; code: ErrorCode; message: string };

export type ReplyValue =
  | { kind: 'loaded'; model: ModelInfo }
  | { kind: 'count'; numTokens: number }
  | { kind: 'stats'; stats: EngineStats }
  | { kind: 'measured'; size: PromptSize }
  | { kind: 'inspected'; model: InspectedModel }
  | { kind: 'machine'; machine: MachineInfo }
  /** JSON of the Chrome trace event format. */
  | { kind: 'trace'; json: string }
  | { kind: 'metrics'; text: string }
  | { kind: 'ok' };

/** What a question's prompt takes; nothing is left out without a note here. */
export interface PromptSize {
  contextTokens: number;
  /** Kept free for the answer. */
  answerTokens: number;
  promptTokens: number;
  /** In the order of `docIds`, then of `snippets`; of a summary, its document alone. */
  parts: {
    path: string;
    tokens: number /** Tokens of it that do not fit and are left out. */;
    omittedTokens: number;
  }[];
  /** What is left out, in words; the same as the answer's diagnostics will say. */
  notes: string[];
}

export interface InspectedModel {
  modelDir: string;
  name: string;
  architecture: string;
  parameters: number;
  contextTokens: number;
  weightsBytes: Record<Precision, number>;
  /** Of them: what writing a token reads and what stays in memory; all but the embedding, of which single rows are looked up. */
  residentBytes: Record<Precision, number>;
  kvBytesPerToken: { int8: number; float32: number };
  /** What it takes at work: the resident weights, and the cache while an ordinary file and conversation are read. */
  memoryBytes: Record<Precision, number>;
  canComplete: boolean;
  canChat: boolean;
  canEdit: boolean;
  note: string;
}

export interface MachineInfo {
  cpu: string;
  /** Physical cores. */
  cores: number;
  memory: { totalBytes: number; availableBytes: number };
  /** Empty is no GPU, virtual display adapters left out; null: not asked for, or the system did not tell. */
  gpus: Gpu[] | null;
  /** null: no battery, or not known. */
  onBattery: boolean | null;
  /** Measured by reading buffers larger than the caches with all physical cores, at most four; decoding is bound by it. null when not asked for, or while requests run. */
  readBytesPerSecond: number | null;
}

export interface Gpu {
  name: string;
  /** null where the system does not tell. */
  totalBytes: number | null;
  /** By all programs; null where it cannot be read. */
  usedBytes: number | null;
  /** Shares the machine's memory, or its driver tells a rounded size: `totalBytes` is an estimate. */
  estimated: boolean;
}

/** Of a time in milliseconds; zeros while nothing is counted. */
export interface Quantiles {
  p50: number;
  p95: number;
  p99: number;
  count: number;
  sum: number;
}

/** One class's times. */
export interface ClassTimes {
  /** Arrival to first step, or to the end without one. */
  queueMs: Quantiles;
  /** Arrival to first token. */
  ttftMs: Quantiles;
  /** Each request's mean time per output token after the first. */
  tpotMs: Quantiles;
  /** Steps with a sequence of the class in them. */
  stepMs: Quantiles;
}

export type Tier = 'window' | 'store' | 'disk' | 'none';

export interface FileStats {
  docId: string;
  path: string;
  /** Whether the editor has it open; closed ones are listed while the cache still holds something of them. */
  open: boolean;
  /** Tokens of its file block that the cache holds. */
  tokens: number;
  /** Further tokens of it that are on the disk. */
  diskTokens: number;
  /** Further tokens of it for which those of an earlier version stand in (see LoadOptions.reuseShifted). */
  shiftedTokens: number;
  bytes: number;
  /** Where most of them are. */
  tier: Tier;
  /** Most of them are in the window and, so that they can leave it at once, in the store: `bytes` counts both. */
  twice?: true;
  /** What its rows have been through: "int8" or "float32" where that is all, or else the lossy codecs of the store; where those are several, each of a part. "kvzip" or "h2o" first, where some were let go of. */
  codecs: string[];
  hits: number;
  /** Cached share of the block tokens that its requests asked for, 0..1. */
  hitRate: number;
  /** Milliseconds since last use. */
  idleMs: number;
  pinned: boolean;
}

/** One run of tokens of the prefix tree with what goes on from it. */
export interface TreeNode {
  /** What prompts of several files begin with; a file's block; what a request added behind it; small runs taken together. */
  kind: 'header' | 'file' | 'request' | 'others';
  /** A file's path, or the priority of the request that computed the run, or `shifted` for tokens taken over from before an edit; else empty. */
  label: string;
  /** The file that the run belongs to. */
  docId?: string;
  /** Of this run alone; of all of them where `runs` is more than 1. */
  tokens: number;
  /** Runs that it stands for. */
  runs: number;
  tier: Tier;
  /** A running request stands on it. */
  inUse: boolean;
  pinned: boolean;
  /** Milliseconds since last use. */
  idleMs: number;
  children: TreeNode[];
}

export interface EngineStats {
  model: ModelInfo | null;
  /** The ceiling; where engines share one, this one's part. */
  maxBytes: number;
  /** Engines that share it, this one included; left out where it has the ceiling to itself. */
  numEngines?: number;
  windowBytes: number;
  storeBytes: number;
  /** Of the prefill lane: one prompt's rows in float32. */
  scratchBytes: number;
  /** Of the ceiling, too: what reads and writes the disk, the memory that codecs work in, and what is measured in quiet moments. */
  bufferBytes: number;
  /** On disk: what is there, of all models, and its cap; 0 without. */
  diskBytes: number;
  diskMaxBytes: number;
  /** Why nothing more is kept there although it is to be, in the user's language; left out where it is, or is not to be. */
  diskFault?: string;
  kvBytesPerToken: number;
  windowSlots: { total: number; free: number; held: number };
  requests: { waiting: number; running: number; done: number; failed: number; aborted: number };
  /**
   * `prompt` of requests that have ended, `promptCached` of it found in the cache, `promptFromDisk` of that on disk; `promptShifted` copied from where they stood
   * before an edit; `drafted` guessed ahead, `accepted` of it verified.
   */
  tokens: {
    prompt: number;
    promptComputed: number;
    promptCached: number;
    promptFromDisk: number;
    promptShifted: number;
    idleComputed: number;
    generated: number;
    drafted: number;
    accepted: number;
  };
  events: { steps: number; evictions: number; preemptions: number; promotions: number; demotions: number };
  /** Over the last 10 s with work in them; 0 when idle. */
  tokensPerSecond: number;
  /** Share of the last 10 s in which a step ran, 0..1. */
  utilisation: number;
  /** Time in steps since the model was loaded. */
  busyMs: number;
  stepMs: Quantiles;
  /** Mean tokens per step. */
  batchTokens: number;
  /** Mean sequences per step. */
  batchSequences: number;
  /** Time from arrival to first token over all requests. */
  ttftMs: Quantiles;
  classes: Record<Priority, ClassTimes>;
  memory: {
    /** Resident size of the process that the engine runs in. */ processBytes: number;
    totalBytes: number;
    availableBytes: number;
  };
  files: FileStats[];
  /** When asked for. */
  tree?: TreeNode[];
}
