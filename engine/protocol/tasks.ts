/** Requests and results: tasks, sampling parameters, priorities, usage and times. Plain data. */

/** Number of characters at the start of another file that completions copy from. */
export const MAX_COPIED = 24_576;

export type Precision = 'int4' | 'int8' | 'float32';

/** Precision of the resident KV pool. */
export type KvPrecision = 'int8' | 'float32';

/** Scheduling class, highest first. `idle`: file blocks that the engine computes while nothing else runs. */
export type Priority = 'completion' | 'chat' | 'summary' | 'idle';

export type FinishReason = 'stop' | 'length' | 'abort';

export type ErrorCode =
  | 'badRequest'
  | 'contextTooLong'
  | 'outOfMemory'
  /** A long text, whose rows are kept on disk, does not fit there. */
  | 'diskFull'
  | 'readFailed'
  /** Rows of a long text cannot be written to the disk. */
  | 'writeFailed'
  | 'unknownDocument'
  | 'modelInvalid'
  | 'modelUnsupported'
  | 'notLoaded'
  | 'engineFailed';

/** How tokens are chosen. A field that is left out has the task's default. */
export interface SamplingParams {
  /** 0 is greedy. */
  temperature?: number;
  topP?: number;
  topK?: number;
  /** Divides positive and multiplies negative logits of tokens that are in the sequence already; 1: no penalty. */
  repetitionPenalty?: number;
  seed?: number;
  maxTokens?: number;
  /** Text that ends the generation; never part of the result. */
  stop?: string[];
  /** Generation goes on after the model's end tokens. */
  ignoreEos?: boolean;
  /** Whether log-probabilities are reported. They take time. Alternatives imply them. */
  logprobs?: boolean;
  /** Number of alternatives reported for each token. */
  topLogprobs?: number;
}

/**
 * Sampling of one of several completions at the same place. The first, index 0, is greedy, as is a single completion.
 * The others are drawn with a seed each, so the same request gives the same results. Send one `generate` for each, with
 * the same task and all at once: their prompt is computed once. Drop empty and equal results.
 */
export function candidateSampling(index: number, given: SamplingParams = {}): SamplingParams {
  return index === 0 ? given : { temperature: 0.8, topP: 0.95, ...given, seed: (given.seed ?? 0) + index };
}

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant';
  content: string;
  /** Where an answer's text came from; left out if the model generated it. */
  source?: AnswerSource;
}

/** A piece of text from another place that may help. Stands at the end of the prompt. */
export interface Snippet {
  path: string;
  text: string;
  /** Line of the file on which it starts, from 0; left out if it does not matter. */
  startLine?: number;
}

export type Task =
  | { kind: 'raw'; prompt: string | number[] }
  | {
      kind: 'complete';
      docId: string;
      offset: number;
      /** Text that counts as inserted at `offset`, before the cursor: for the completion after an accepted one. */
      inserted?: string;
      /** Whether the text may have several lines; depends on the text around the cursor when left out. */
      multiline?: boolean;
      snippets?: Snippet[];
      /** Other documents and sources that it may copy from, the likeliest first. Unknown ones are ignored. */
      copySources?: string[];
      /**
       * Names of the packages that a project of scripts or Python lists, for Python with those of its folders. No other
       * is imported. Left out if not known.
       */
      packages?: string[];
      /**
       * By path, the names of the files in folders that an import can reach, and of their folders with `/` at the end,
       * so that no file is imported that does not exist. Folders that are not known are left out.
       */
      folders?: Record<string, string[]>;
      /**
       * Shows the text even with low confidence, because the user has requested it. `line`: further lines only with
       * high confidence, for text that is drawn and not the most probable.
       */
      showLowConfidence?: boolean | 'line';
    }
  | ChatTask
  | SummarizeTask
  | {
      kind: 'summarizeFolder';
      path: string;
      docIds: string[];
      /** Paths of these documents, relative to the folder; when left out, as the engine names documents. */
      paths?: string[];
      /** Summaries of files that the host has already. */
      summaries?: { path: string; text: string }[];
    }
  /** New text for a range of a document. */
  | { kind: 'edit'; docId: string; range: { start: number; end: number }; instruction: string }
  /** `diff` is unified; `subjects` are the first lines of recent commits, newest first: the project's habits. */
  | { kind: 'commitMessage'; diff: string; subjects?: string[] };

export interface ChatTask {
  kind: 'chat';
  messages: ChatMessage[];
  /** The first is the shared file block, the others stand after it. */
  docIds: string[];
  /** Offset in the first document. Of a large file, the part around it is shown. */
  cursor?: number;
  /** Selections (with `startLine`) stand after the last question, files that are not open after the first. */
  snippets?: Snippet[];
  /** Asks a model that is too small for the question, too. */
  anyway?: boolean;
  /** The messages are for the model as they are: no commands, fixed replies, rewording, or check of the answer. */
  asIs?: boolean;
}

export interface SummarizeTask {
  kind: 'summarize';
  docId: string;
  /** Range and name of a symbol or selection. The whole file when left out. */
  range?: { start: number; end: number; label?: string };
}

export interface TokenLogprob {
  tokenId: number;
  logprob: number;
}

export interface Usage {
  promptTokens: number;
  /** Prompt tokens whose rows were found in the cache. */
  cachedTokens: number;
  completionTokens: number;
  /** Those of them that are reasoning; left out if there are none. */
  reasoningTokens?: number;
  /** Prompt tokens that belong to the shared file block. */
  blockTokens: number;
  /** Cached tokens whose rows were reused after an edit, an approximation; left out if there are none. */
  shiftedTokens?: number;
  /** The context was longer than memory, and each token attended to parts of it. */
  inParts?: boolean;
}

/** Tokens of the answer itself. */
export function answerTokens({ completionTokens, reasoningTokens = 0 }: Usage): number {
  return completionTokens - reasoningTokens;
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
 * `unattached`: the fixed reply that a file has to be attached first. `refused`: that the model is too small.
 */
export type AnswerSource = 'files' | 'stock' | 'unattached' | 'refused';
