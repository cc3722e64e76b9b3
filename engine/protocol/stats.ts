/** Reports of the engine: models, machine, cache and request statistics. Plain data only. */
import type { KvPrecision, Precision, Priority } from './tasks.ts';

/** What an approximation loses, measured once per model on a sample. */
interface Loss {
  /** KL divergence, in nats. */
  klMean: number;
  klMax: number;
  /** Share of positions with the same most probable token, 0..1. */
  top1: number;
  /** Largest mean KL divergence at which it is used. */
  bound: number;
  numTokens: number;
}

/**
 * The loss of position-shifted reuse, measured once per model on edits of a sample: over the tokens after the reused
 * rows, against exact rows.
 */
export type ShiftQuality = Loss;

/**
 * The loss of a codec of the store, measured once per model and codec on a sample: over the tokens after the compressed
 * rows, against the rows before compression.
 */
export interface CodecQuality extends Loss {
  codec: string;
  /** Bytes per token of a long text. */
  bytesPerToken: number;
  /** How many times smaller than float16. */
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
  /** Bytes of the weights that stay in memory: all but an embedding whose rows are read from the file. */
  residentBytes: number;
  kvBytesPerToken: number;
  /** Threads of a step. */
  threads: number;
  /** Native kernels that compute the steps. Left out: onnxruntime computes them. */
  kernels?: string;
  loadMs: number;
  /** False if the imported files were already in the cache folder. */
  imported: boolean;
  canComplete: boolean;
  canChat: boolean;
  /** Follows instructions well enough to change code and to write commit messages. */
  canEdit: boolean;
  /** Whether it reads snippets of other files in a completion. */
  readsSnippets: boolean;
  /** Whether completions copy from other files. */
  copiesFiles: boolean;
  /** The model's note about itself (manifest), in each language of the user interface; both empty, or neither. */
  note: { en: string; pt: string };
  /** The same about its answers in the chat. */
  chatNote: { en: string; pt: string };
  /** Most tokens of reasoning before an answer in chat; left out for a model that is not asked to reason. */
  reasoningTokens?: number;
  /** Left out without position-shifted reuse. It is in use if `klMean` is within the bound. */
  shifted?: ShiftQuality;
  /**
   * Left out without compression. One entry per codec, the mildest first; for pruning: files, then long conversations.
   * Each is in use if its `klMean` is within the bound.
   */
  compressed?: readonly CodecQuality[];
}

/** The size of a question's prompt. `notes` names everything that is left out. */
export interface PromptSize {
  contextTokens: number;
  /** Tokens kept free for the answer. */
  answerTokens: number;
  promptTokens: number;
  /** In the order of `docIds`, then of `snippets`. For a summary: only its document. */
  parts: {
    path: string;
    tokens: number;
    /** Tokens of it that do not fit and are left out. */
    omittedTokens: number;
  }[];
  /** What is left out, in words. The answer's diagnostics will be the same. */
  notes: string[];
}

export interface InspectedModel {
  modelDir: string;
  name: string;
  architecture: string;
  /** How most of its weights are stored: "Q4_K", "BF16", "GPTQ int4". */
  format: string;
  parameters: number;
  contextTokens: number;
  weightsBytes: Record<Precision, number>;
  /** Bytes of the weights that stay in memory and are read for each token: all but an embedding read by row. */
  residentBytes: Record<Precision, number>;
  kvBytesPerToken: { int8: number; float32: number };
  /** Memory in use: the resident weights, and the cache during the prefill of an ordinary file and conversation. */
  memoryBytes: Record<Precision, number>;
  canComplete: boolean;
  canChat: boolean;
  canEdit: boolean;
  /** Why its fill-in-the-middle tokens are not used. Null if it has none, or if they are used. */
  completionFault: string | null;
  /** Why the chat template cannot be used. Null if there is no such fault. */
  chatFault: string | null;
  note: string;
}

export interface MachineInfo {
  cpu: string;
  /** Physical cores. */
  cores: number;
  memory: { totalBytes: number; availableBytes: number };
  /** Without virtual display adapters. Empty: no GPU; null: not requested, or not known. */
  gpus: Gpu[] | null;
  /** Null: no battery, or not known. */
  onBattery: boolean | null;
  /**
   * Memory bandwidth, which bounds decoding. Measured by reading buffers larger than the caches, with all physical
   * cores, at most four. Null: not requested, or requests were running.
   */
  readBytesPerSecond: number | null;
}

export interface Gpu {
  name: string;
  /** Null if the system does not report it. */
  totalBytes: number | null;
  /** Used by all programs; null if it cannot be read. */
  usedBytes: number | null;
  /** It shares the machine's memory, or its driver reports a rounded size: `totalBytes` is an estimate. */
  estimated: boolean;
}

/** Quantiles of a time in milliseconds; 0 while nothing has been counted. */
export interface Quantiles {
  p50: number;
  p95: number;
  p99: number;
  count: number;
  sum: number;
}

/** The times of one class. */
export interface ClassTimes {
  /** Arrival to first step, or to the end without one. */
  queueMs: Quantiles;
  /** Arrival to first token. */
  ttftMs: Quantiles;
  /** Mean time per output token after the first, by request. */
  tpotMs: Quantiles;
  /** Duration of the steps that have a sequence of the class. */
  stepMs: Quantiles;
}

export type Tier = 'pool' | 'store' | 'disk' | 'none';

export interface FileStats {
  docId: string;
  path: string;
  /** Whether it is open in the editor. Closed files are listed while the cache holds rows of them. */
  open: boolean;
  /** Tokens of its file block in memory. */
  tokens: number;
  /** Further tokens of it on the disk. */
  diskTokens: number;
  /** Further tokens whose rows come from an earlier version (see LoadOptions.reuseShifted). */
  shiftedTokens: number;
  bytes: number;
  /** Where most of its rows are. */
  tier: Tier;
  /** Most rows are in the pool and also in the store, so that they can leave the pool at once. `bytes` counts both. */
  twice?: true;
  /**
   * How its rows have been stored: "int8" or "float32" if without loss, otherwise the lossy codecs of its parts.
   * "kvzip" or "h2o" comes first if some rows were dropped.
   */
  codecs: string[];
  hits: number;
  /** Share of its requests' block tokens that were cached, 0..1. */
  hitRate: number;
  /** Milliseconds since the last use. */
  idleMs: number;
  pinned: boolean;
}

/** One run of tokens in the radix tree, with the runs below it. */
export interface TreeNode {
  /** `header`: common start of prompts; `file`: file block; `request`: text after it; `others`: small runs together. */
  kind: 'header' | 'file' | 'request' | 'others';
  /** A file's path; the priority of the request that computed the run; `shifted` for reused rows; otherwise empty. */
  label: string;
  /** The file that the run belongs to. */
  docId?: string;
  /** Tokens of this run without those below it; of all `runs` together if there are several. */
  tokens: number;
  /** Number of runs that it stands for. */
  runs: number;
  tier: Tier;
  /** A running request uses it. */
  inUse: boolean;
  pinned: boolean;
  /** Milliseconds since the last use. */
  idleMs: number;
  children: TreeNode[];
}

export interface EngineStats {
  model: ModelInfo | null;
  /** The memory budget; if engines share one, the part of this engine. */
  maxBytes: number;
  /** Number of engines that share the budget, including this one; left out if it is not shared. */
  numEngines?: number;
  poolBytes: number;
  storeBytes: number;
  /** Bytes of the prefill lane's scratch: rows of one prompt in float32. */
  scratchBytes: number;
  /** Further bytes of the budget: disk buffers, memory of the codecs, and measurements in idle maintenance. */
  bufferBytes: number;
  /** Bytes on disk, of all models, and their limit; 0 without a disk tier. */
  diskBytes: number;
  diskMaxBytes: number;
  /** Why the disk tier cannot be written, in the user's language; left out if it can, or if there is none. */
  diskFault?: string;
  kvBytesPerToken: number;
  poolSlots: { total: number; free: number; held: number };
  requests: { waiting: number; running: number; done: number; failed: number; aborted: number };
  /**
   * `prompt`: of requests that have ended. `promptCached`: of these, found in the cache. `promptFromDisk`: of these,
   * read from disk. `promptShifted`: rows reused after an edit. `drafted` and `accepted`: drafts, and right ones.
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
  /** Generated tokens per second of step time in the last 10 s; 0 when idle. */
  tokensPerSecond: number;
  /** Share of the last 10 s in which a step ran, 0..1. */
  utilisation: number;
  /** Time of all steps since the model was loaded. */
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
    /** Resident size of the process in which the engine runs. */
    processBytes: number;
    totalBytes: number;
    availableBytes: number;
  };
  files: FileStats[];
  /** Left out if it was not requested. */
  tree?: TreeNode[];
}
