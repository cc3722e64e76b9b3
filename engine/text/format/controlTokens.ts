/**
 * Tells which tokens are control tokens: written by templates and prompts, never part of an answer. Does not know what
 * each of them means.
 */
import type { AddedToken } from '../tokenizer/tokenizerJson.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';

/** Marks around the reasoning of a model. Templates look for them in earlier answers. */
export interface ReasoningMarks {
  readonly open: string;
  readonly close: string;
}

const THINK: ReasoningMarks = { open: '<think>', close: '</think>' };
/** The first are those of Mistral's models. Models without tokens for them may still write the tags as text. */
const MARKS: readonly ReasoningMarks[] = [{ open: '[THINK]', close: '[/THINK]' }, THINK];
export const REASONING_MARKS: readonly string[] = MARKS.flatMap(({ open, close }) => [open, close]);

/** The form of a name that published tokenizers give to control tokens alone, marked as special or not. */
const BARRED = /^<[|｜][^<>\s]+[|｜]>$/u;
/**
 * Control tokens in the form of a tag that published tokenizers do not mark as special. A tag by itself says nothing:
 * Gemma has added tokens such as <table> and <h1>, which are HTML. No tools are offered to a model, so a call of one is
 * no answer.
 */
const TAGS =
  /^<\/?(?:think|tool_call|tool_response|file_sep|filename|reponame|repo_name|fim_(?:prefix|middle|suffix|pad))>$/;

/**
 * Whether generated text ends with this token. Text of a user is encoded without added tokens, so a model that writes
 * one does not quote it.
 */
function isControl({ content, special }: AddedToken): boolean {
  return special || BARRED.test(content) || TAGS.test(content);
}

/** Ids of all control tokens. */
export function controlIds(tokenizer: Tokenizer): number[] {
  return [...tokenizer.addedTokens.values()].filter(isControl).map(({ id }) => id);
}

/** Ids of the marks that the tokenizer has as tokens. */
export function reasoningIds(tokenizer: Tokenizer): number[] {
  return REASONING_MARKS.flatMap((mark) => addedId(tokenizer, mark) ?? []);
}

/** The marks that a model with this tokenizer writes. */
export function marksOf(tokenizer: Tokenizer): ReasoningMarks {
  return MARKS.find(({ open }) => addedId(tokenizer, open) !== undefined) ?? THINK;
}

function addedId(tokenizer: Tokenizer, token: string): number | undefined {
  const id = tokenizer.idOf(token);
  return id !== undefined && tokenizer.addedTokens.has(id) ? id : undefined;
}
