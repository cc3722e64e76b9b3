/** What a request asks for: tasks, sampling parameters, priorities, and what a result says about itself. */
/** Characters of another file that completions copy from, from its beginning on. */
export const MAX_COPIED = 24_576;

export type Precision = 'int4' | 'int8' | 'float32';

/** Precision of the resident KV pool. */
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
  /** Of an answer: where its text came from; left out where the model wrote it. */
  source?: AnswerSource;
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
      /**
       * Text taken as already inserted at `offset`, with the cursor behind it: the completion after one that is
       * accepted.
       */
      inserted?: string;
      /** Whether the text may go on below the line; decided by what is around the cursor when left out. */
      multiline?: boolean;
      snippets?: Snippet[];
      /**
       * Other documents and sources that it may copy from, the likeliest first; those that the engine does not have are
       * left out.
       */
      copySources?: string[];
      /**
       * Shows it, too, where the model is not sure: the user has asked for it. `line`: further lines only where it is
       * sure, for what is drawn and not the most probable text.
       */
      showLowConfidence?: boolean | 'line';
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
  /**
   * Cached tokens that were taken over from where they stood before an edit, an approximation; left out where there are
   * none.
   */
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
 * `files`: read from the attached files, whose lines the text names. `stock`: a fixed reply, for example to a greeting.
 */
export type AnswerSource = 'files' | 'stock';
