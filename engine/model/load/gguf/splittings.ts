/**
 * The ways to split text before byte-level BPE, by the name that a GGUF file gives them: each as in the tokenizer.json of
 * the models that the name stands for. Does not split text.
 */
import type { Json } from '../configFields.ts';

/** How a model with byte-level BPE splits text, and what its files leave out. */
interface Splitting {
  readonly normalizer: Json | null;
  readonly steps: readonly Json[];
  readonly ignoreMerges: boolean;
  readonly addBos: boolean;
}

export const byteLevel = (splits: boolean): Json => ({
  type: 'ByteLevel',
  add_prefix_space: false,
  trim_offsets: true,
  use_regex: splits,
});
const split = (pattern: string): Json => ({
  type: 'Split',
  pattern: { Regex: pattern },
  behavior: 'Isolated',
  invert: false,
});

const CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const WORD = '[^\\r\\n\\p{L}\\p{N}]?\\p{L}+';
const SPACES = '\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
/** A letter that a word may begin with, and one that it may go on with. */
const UPPER = '[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]';
const LOWER = '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]';

/** The pattern of GPT-4's tokenizer, with so many digits in a piece. */
const gpt4 = (digits: string): Json =>
  split(`${CONTRACTION}|${WORD}|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${SPACES}`);
/** The pattern of GPT-4o's tokenizer, which also cuts before a capital; with so many digits in a piece. */
const gpt4o = (contraction: string, digits: string): Json =>
  split(
    `[^\\r\\n\\p{L}\\p{N}]?${UPPER}*${LOWER}+${contraction}|[^\\r\\n\\p{L}\\p{N}]?${UPPER}+${LOWER}*${contraction}|` +
      `${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${SPACES}`,
  );
const ONE_DIGIT: Json = { type: 'Digits', individual_digits: true };

/** No normaliser, merges as they are, and no token before a text. */
const plain = (...steps: Json[]): Splitting => ({ normalizer: null, steps, ignoreMerges: false, addBos: false });
const GPT2 = plain(byteLevel(true));
const GPT2_WITH_DIGITS = plain(ONE_DIGIT, byteLevel(true));
const LLAMA3: Splitting = { ...plain(gpt4('\\p{N}{1,3}'), byteLevel(false)), ignoreMerges: true, addBos: true };
const QWEN2: Splitting = { ...plain(gpt4('\\p{N}'), byteLevel(false)), normalizer: { type: 'NFC' } };

export const SPLITTINGS: ReadonlyMap<string, Splitting> = new Map([
  ['qwen2', QWEN2],
  ['deepseek-r1-qwen', QWEN2],
  ['llama-bpe', LLAMA3],
  ['llama3', LLAMA3],
  ['llama-v3', LLAMA3],
  // SmolLM3 has the tokenizer of Llama 3, but no token before a text.
  ['smaug-bpe', { ...LLAMA3, addBos: false }],
  ['gpt-4o', plain(gpt4o(`${CONTRACTION}?`, '\\p{N}{1,3}'), byteLevel(false))],
  ['tekken', { ...plain(gpt4o('', '\\p{N}'), byteLevel(false)), ignoreMerges: true, addBos: true }],
  [
    'deepseek-coder',
    plain(
      split('[\\r\\n]'),
      split('\\s?\\p{L}+'),
      split('\\s?\\p{P}+'),
      split('[一-龥ࠀ-一가-퟿]+'),
      ONE_DIGIT,
      byteLevel(false),
    ),
  ],
  ['dbrx', plain(gpt4('\\p{N}{1,3}'), byteLevel(false))],
  ['seed-coder', plain(split(`${CONTRACTION}|${WORD}|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|${SPACES}`), byteLevel(false))],
  ['starcoder', GPT2_WITH_DIGITS],
  ['refact', GPT2_WITH_DIGITS],
  ['smollm', GPT2_WITH_DIGITS],
  ['mellum2', GPT2_WITH_DIGITS],
  ['mellum', GPT2],
  ['gpt-2', GPT2],
]);
