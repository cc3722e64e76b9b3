/**
 * The messages between the host (editor or command line) and the engine. Plain data only.
 * Both sides compare PROTOCOL_VERSION before anything else.
 * - Each host message with a `requestId` gets an answer: `generate` any number of `chunk` and exactly one `done` or
 *   `error`, the others exactly one `reply` or `error`.
 * - The engine mirrors the documents: `generate` names a document and a position, never a rendered prompt.
 * - Offsets are UTF-16 code units of the document's text as the host holds it. Times are milliseconds. Sizes are bytes.
 */
import type { EngineStats, InspectedModel, MachineInfo, ModelInfo, PromptSize } from './stats.ts';
import type {
  AnswerSource,
  ChatTask,
  ErrorCode,
  FinishReason,
  KvPrecision,
  Precision,
  Priority,
  SamplingParams,
  SummarizeTask,
  Task,
  Timings,
  TokenLogprob,
  Usage,
} from './tasks.ts';

export const PROTOCOL_VERSION = 4;

/**
 * Replaces [start, end) of the text before the message's first edit by `text`; edits are ordered last to first and do
 * not overlap.
 */
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
  /**
   * PoolBudget of pool, store, the prefill lane's scratch and buffers of the disk tier, of all engines in `enginesDir`
   * together; 0 lets the engine choose.
   */
  maxBytes: number;
  /** 0 lets the engine choose. */
  threads: number;
  /** Longest sequence; the model's own limit when left out, never more than that. */
  contextTokens?: number;
  /**
   * Whether, behind an edit, a request may take tokens over that an older version of its file has computed, turned to
   * their
   * new positions, until idle time has computed them anew. An approximation: only where measuring says that this model
   * bears it.
   */
  reuseShifted?: boolean;
  /** How what is long out of use is compressed with loss; nothing is when left out. */
  compress?: LossyCodec;
  /** Folder for what is kept of the cache on disk, and its most bytes; nothing is kept without it. */
  disk?: { dir: string; maxBytes: number };
  /**
   * Folder in which engines tell each other that they are at work, to share one budget; made if missing. Without it
   * this one has the budget to itself.
   */
  enginesDir?: string;
}

/**
 * Of the store, and how it is chosen; the names of settings and command line. "int8" loses nothing; "auto" compresses
 * when memory is
 * short, each run with what its age and the fullness of the budget call for; the others compress whatever is long out
 * of use.
 */
export const CACHE_CODECS = ['int8', 'auto', 'int4-kivi', 'nvfp4', 'turboquant', 'kvzip'] as const;

export type CacheCodec = (typeof CACHE_CODECS)[number];

type LossyCodec = Exclude<CacheCodec, 'int8'>;

export function compressOf(codec: CacheCodec): Pick<LoadOptions, 'compress'> {
  return codec === 'int8' ? {} : { compress: codec };
}

export type HostMessage =
  | ({ type: 'load'; requestId: string } & LoadOptions)
  | { type: 'unload'; requestId: string }
  /**
   * The user's language, such as "pt-br", for numbers, and translations of the engine's sentences, by the English text;
   * before everything else. English without it.
   */
  | { type: 'language'; language: string; texts: Record<string, string> }
  | {
      type: 'configure';
      /** 0 lets the engine choose. */
      maxBytes?: number;
      /** Whether file blocks may be computed while idle. */
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
  /**
   * A file that nobody has open, for completions to copy from (`copySources`) and for nothing else: none of it is
   * computed or kept. It has the docId of no document.
   */
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
   * Memory, processors and battery of this machine; needs no model. Its graphics, too, unless `graphics` is false:
   * listing
   * them may take a second. `speed` also measures how fast memory is read.
   */
  | { type: 'machine'; requestId: string; graphics?: boolean; speed?: boolean }
  /** The last steps as a Chrome trace. */
  | { type: 'trace'; requestId: string }
  | { type: 'pin'; docId: string; pinned: boolean }
  /** Drops a document's unreferenced KV, or all of it, in memory and on disk, there that of other models, too. */
  | { type: 'evict'; docId: string /** What is on disk stays. */; memoryOnly?: boolean }
  | { type: 'evict' /** What is pinned, too. */; pinned?: boolean }
  /** Answered when no request is waiting or running and idle work has ended. */
  | { type: 'flush'; requestId: string }
  /** `tree` asks for the prefix tree, too. */
  | { type: 'stats'; requestId: string; tree?: boolean }
  | { type: 'shutdown'; requestId: string };

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
      /**
       * All that were generated: a completion's may begin with those of text before the cursor, which is said again
       * (see healing).
       */
      tokenIds: number[];
      logprobs: number[];
      topLogprobs?: TokenLogprob[][];
      usage: Usage;
      timings: Timings;
      /** What the user should know of this answer: text left out, a reason nothing is shown. */
      diagnostics: string[];
      /** The model has written more that it is not sure enough of. */
      suppressed?: true;
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
  | { kind: 'ok' };
