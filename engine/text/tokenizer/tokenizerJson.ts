/** The parts of a tokenizer.json that are used, and how its pipelines are walked. Does not run them. */
import { RequestError } from '../../protocol/errors.ts';

export interface TokenizerJson {
  model: {
    type?: string;
    vocab: Record<string, number>;
    ignore_merges?: boolean;
    unk_token?: string | null;
    fuse_unk?: boolean;
    byte_fallback?: boolean;
    continuing_subword_prefix?: string | null;
  };
  added_tokens: AddedToken[];
  normalizer: Step | null;
  pre_tokenizer: Step | null;
  decoder: Step | null;
  post_processor: Step | null;
}

export interface AddedToken {
  id: number;
  content: string;
  special: boolean;
  /** Takes the white space before it. */
  lstrip?: boolean;
  /** Takes the white space behind it. */
  rstrip?: boolean;
  /** Does not match inside a word. */
  single_word?: boolean;
  /** Matches its normalised content in the normalised text. The default is `!special`. */
  normalized?: boolean;
}

/** A stage of a pipeline. Stages of the type Sequence contain other stages. */
export interface Step {
  type?: string;
  [key: string]: unknown;
}

/** The steps of a pipeline, without its sequences. */
export function flatSteps(step: Step | null): Step[] {
  if (step === null || step === undefined) return [];
  if (step.type !== 'Sequence') return [step];
  const inner = (step.normalizers ?? step.pretokenizers ?? step.decoders ?? step.processors ?? []) as Step[];
  return inner.flatMap((child) => flatSteps(child));
}

/** The error for a tokenizer whose ids would be other ones than those of the reference. */
export function unsupported(what: string): RequestError {
  return new RequestError('modelUnsupported', `tokenizer.json: ${what}, which is not supported`);
}
