/** What the engine reports: models, machine, cache and request statistics. Plain data, no behaviour. */
import type { KvPrecision, Precision, Priority } from './tasks.ts';

/**
 * What taking over costs, measured once per model on edits of a sample: against the exact rows, over the tokens after
 * it.
 */
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

/**
 * What compressing the store costs, measured once per model and codec on a sample: against the rows as they were, over
 * the tokens after them.
 */
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
  /**
   * Left out where position-shifted reuse was not asked for, or this precision has none; it is in use where `klMean` is
   * within the bound.
   */
  shifted?: ShiftQuality;
  /**
   * Left out where nothing is compressed: of each codec that is to be used, mildest first; where rows are let go of
   * files, then of long conversations. Each is in use where its `klMean` is within the bound.
   */
  compressed?: readonly CodecQuality[];
}

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
  /**
   * Of them: what writing a token reads and what stays in memory; all but the embedding, of which single rows are
   * looked up.
   */
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
  /**
   * Measured by reading buffers larger than the caches with all physical cores, at most four; decoding is bound by it.
   * null when not asked for, or while requests run.
   */
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

export type Tier = 'pool' | 'store' | 'disk' | 'none';

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
  /** Most of them are in the pool and, so that they can leave it at once, in the store: `bytes` counts both. */
  twice?: true;
  /**
   * What its rows have been through: "int8" or "float32" where that is all, or else the lossy codecs of the store;
   * where those are several, each of a part. "kvzip" or "h2o" first, where some were let go of.
   */
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
  /**
   * What prompts of several files begin with; a file's block; what a request added behind it; small runs taken
   * together.
   */
  kind: 'header' | 'file' | 'request' | 'others';
  /**
   * A file's path, or the priority of the request that computed the run, or `shifted` for tokens taken over from before
   * an edit; else empty.
   */
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
  /** The budget; where engines share one, this one's part. */
  maxBytes: number;
  /** Engines that share it, this one included; left out where it has the budget to itself. */
  numEngines?: number;
  poolBytes: number;
  storeBytes: number;
  /** Of the prefill lane: one prompt's rows in float32. */
  scratchBytes: number;
  /**
   * Of the budget, too: what reads and writes the disk, the memory that codecs work in, and what is measured in idle
   * maintenance.
   */
  bufferBytes: number;
  /** On disk: what is there, of all models, and its cap; 0 without. */
  diskBytes: number;
  diskMaxBytes: number;
  /**
   * Why nothing more is kept there although it is to be, in the user's language; left out where it is, or is not to be.
   */
  diskFault?: string;
  kvBytesPerToken: number;
  poolSlots: { total: number; free: number; held: number };
  requests: { waiting: number; running: number; done: number; failed: number; aborted: number };
  /**
   * `prompt` of requests that have ended, `promptCached` of it found in the cache, `promptFromDisk` of that on disk;
   * `promptShifted` copied from where they stood
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
