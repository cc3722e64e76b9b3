/**
 * The messages between the host (editor or command line) and the engine. Plain data only.
 * Both sides compare PROTOCOL_VERSION first. Times are milliseconds. Sizes are bytes.
 * Offsets are UTF-16 code units of the document's text as the host holds it.
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

export const PROTOCOL_VERSION = 10;

/**
 * Replaces [start, end) by `text`. Offsets are of the text before the first edit of the message. Edits are ordered from
 * last to first and do not overlap.
 */
export interface TextEdit {
  start: number;
  end: number;
  text: string;
}

export interface LoadOptions {
  modelDir: string;
  /** Folder for imported models; created if missing. */
  cacheDir: string;
  precision: Precision;
  /** When left out: int8, or float32 with float32 weights. */
  kv?: KvPrecision;
  /**
   * Memory budget of pool, store, scratch of the prefill lane and disk buffers, for all engines in `enginesDir`
   * together. 0: the engine chooses.
   */
  maxBytes: number;
  /** 0: the engine chooses. */
  threads: number;
  /** False: onnxruntime computes, also where the native kernels could. */
  native?: boolean;
  /** Most tokens of a sequence; the model's own limit when left out, and at most that limit. */
  contextTokens?: number;
  /**
   * Whether a request may reuse, after an edit, K/V rows that were computed for an older version of its file. Keys are
   * rotated to their new positions. Idle work computes exact rows later. It is an approximation, and used only if a
   * measurement shows that this model tolerates it.
   */
  reuseShifted?: boolean;
  /** How rows that have not been used for long are compressed with loss; not at all when left out. */
  compress?: LossyCodec;
  /** Folder and most bytes of the disk tier; there is none when left out. */
  disk?: { dir: string; maxBytes: number };
  /** Folder in which engines register to share one budget; created if missing. Not shared when left out. */
  enginesDir?: string;
}

/**
 * The codecs of the store, with the names of settings and command line. "int8" loses nothing. "auto" compresses when
 * memory is short and chooses a codec for each run by its age and the use of the budget. The others compress all rows
 * that have not been used for long.
 */
export const CACHE_CODECS = ['int8', 'auto', 'int4-kivi', 'nvfp4', 'turboquant', 'kvzip'] as const;

export type CacheCodec = (typeof CACHE_CODECS)[number];

type LossyCodec = Exclude<CacheCodec, 'int8'>;

export function compressOf(codec: CacheCodec): Pick<LoadOptions, 'compress'> {
  return codec === 'int8' ? {} : { compress: codec };
}

/**
 * A message with a `requestId` gets an answer: `generate` any number of `chunk` and exactly one `done` or `error`, the
 * others exactly one `reply` or `error`. The engine mirrors the documents: `generate` names a document and a position,
 * never a rendered prompt.
 */
export type HostMessage =
  | ({ type: 'load'; requestId: string } & LoadOptions)
  | { type: 'unload'; requestId: string }
  /**
   * The user's language, such as "pt-br", for numbers, and translations of the engine's texts by the English text.
   * Comes before all other messages. English when it is not sent.
   */
  | { type: 'language'; language: string; texts: Record<string, string> }
  | {
      type: 'configure';
      /** 0: the engine chooses. */
      maxBytes?: number;
      /** Whether file blocks may be computed while idle. */
      idleWork?: boolean;
    }
  | {
      type: 'generate';
      requestId: string;
      task: Task;
      priority: Priority;
      sampling?: SamplingParams;
      /** Requests of one client share its part of the service (see VirtualTokens). Its own client when left out. */
      clientId?: string;
    }
  | { type: 'abort'; requestId: string }
  /** A user now waits for the request, or no longer does. */
  | { type: 'prioritise'; requestId: string; priority: Priority }
  | {
      type: 'documentChanged';
      docId: string;
      version: number;
      /** As the editor shows it. The engine keeps the last two parts. */
      path: string;
      text: string;
      /** The editor's language id, if the path does not show it: untitled files, cells of a notebook. */
      language?: string;
      /** Nothing of the document is ever written to the disk. */
      secret?: boolean;
      /** Nothing of this text is written to the disk until it is saved. */
      unsaved?: boolean;
    }
  | { type: 'documentChanged'; docId: string; version: number; edits: TextEdit[]; unsaved?: boolean }
  /** The present text has been saved; `saved` false: it has not been saved after all. */
  | { type: 'documentSaved'; docId: string; saved: boolean }
  | { type: 'documentClosed'; docId: string }
  /**
   * A file that is not open, only for completions to copy from (`copySources`). Nothing of it is computed or kept. Its
   * docId differs from those of all documents.
   */
  | { type: 'sourceChanged'; docId: string; path: string; text: string }
  | { type: 'sourceClosed'; docId: string }
  /** Counts the tokens of a text, or of a mirrored document's file block. */
  | { type: 'countTokens'; requestId: string; text: string }
  | { type: 'countTokens'; requestId: string; docId: string }
  /** The size of a question's prompt, part by part, without running it. */
  | { type: 'measure'; requestId: string; task: ChatTask | SummarizeTask; sampling?: SamplingParams }
  /** Describes a model folder without loading it. Needs no model. `native`: as in LoadOptions; sizes depend on it. */
  | { type: 'inspect'; requestId: string; modelDir: string; native?: boolean }
  /**
   * Memory, processors and battery of this machine. Needs no model. Lists the GPUs, which may take a second, unless
   * `graphics` is false. `speed`: also measures how fast memory is read.
   */
  | { type: 'machine'; requestId: string; graphics?: boolean; speed?: boolean }
  /** The last steps as a Chrome trace. */
  | { type: 'trace'; requestId: string }
  | { type: 'pin'; docId: string; pinned: boolean }
  /**
   * Drops a document's unreferenced rows in memory, and on disk for all models. `memoryOnly`: the disk stays as it is.
   */
  | { type: 'evict'; docId: string; memoryOnly?: boolean }
  /** Drops all unreferenced rows. `pinned`: pinned ones too. */
  | { type: 'evict'; pinned?: boolean }
  /** Answered when no request is waiting or running and idle work has ended. */
  | { type: 'flush'; requestId: string }
  /** `tree`: with the radix tree. */
  | { type: 'stats'; requestId: string; tree?: boolean }
  | { type: 'shutdown'; requestId: string };

export type EngineMessage =
  | { type: 'ready'; version: number }
  | { type: 'loadProgress'; requestId: string; stage: 'import' | 'session'; fraction: number }
  /** How many sequences of a request with several sequences have ended. */
  | { type: 'progress'; requestId: string; numDone: number; numTotal: number }
  | {
      type: 'chunk';
      requestId: string;
      text: string;
      /** What the model reasons before its answer. Only in chat, and then `text` is empty. */
      reasoning?: string;
      tokenIds: number[];
      /** Empty unless requested or needed to decide what is shown; also in `done`. */
      logprobs: number[];
    }
  | {
      type: 'done';
      requestId: string;
      finishReason: FinishReason;
      /** The text of all chunks. */
      text: string;
      /** The reasoning of all chunks; left out if there is none. */
      reasoning?: string;
      /** All generated tokens. Those of a completion may begin with text before the cursor (see healing). */
      tokenIds: number[];
      logprobs: number[];
      topLogprobs?: TokenLogprob[][];
      usage: Usage;
      timings: Timings;
      /** What the user should know about this answer: text that was left out, why nothing is shown. */
      diagnostics: string[];
      /** The model has generated more, with too little confidence. */
      suppressed?: true;
      /** Where the text came from, if not from the model. */
      source?: AnswerSource;
    }
  | { type: 'reply'; requestId: string; value: ReplyValue }
  /** For the log: a fault without loss. */
  | { type: 'log'; message: string }
  /** Without requestId, the engine itself has failed. Each pending request has already got its own `error`. */
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
