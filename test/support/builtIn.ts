/**
 * Expected figures of the built-in model, for any such model. They come from the model's own files and from formulas
 * that are written here again, independent of the engine. Only `config` comes from the engine's parser.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseConfig } from '../../engine/model/load/hfConfig.ts';

const dir = join(import.meta.dirname, '../../model');
const read = (name: string) => JSON.parse(readFileSync(join(dir, name), 'utf8'));

interface Note {
  en: string;
  pt: string;
}

/** Fields of config.json that the formulas use. They describe a qwen3 model whose output layer is its embedding. */
interface Sizes {
  model_type: string;
  tie_word_embeddings: boolean;
  vocab_size: number;
  hidden_size: number;
  intermediate_size: number;
  num_hidden_layers: number;
  num_attention_heads: number;
  num_key_value_heads: number;
  head_dim: number;
  max_position_embeddings: number;
}
const sizes = read('config.json') as Sizes;

/**
 * Adds up the weights of queries and output, of keys and values, of the three MLP matrices, and of the norms of the
 * layer and its heads.
 */
function parametersOf(of: Sizes): number {
  const { hidden_size: hidden, head_dim: head } = of;
  const attention = 2 * hidden * head * (of.num_attention_heads + of.num_key_value_heads);
  const layer = attention + 3 * hidden * of.intermediate_size + 2 * hidden + 2 * head;
  return of.vocab_size * hidden + of.num_hidden_layers * layer + hidden;
}

export const BUILT_IN = {
  architecture: sizes.model_type,
  tied: sizes.tie_word_embeddings,
  vocabSize: sizes.vocab_size,
  contextTokens: sizes.max_position_embeddings,
  parameters: parametersOf(sizes),
  /** Number of key and value numbers that a token has over all layers. */
  kvValues: 2 * sizes.num_hidden_layers * sizes.num_key_value_heads * sizes.head_dim,
  /**
   * Bytes of a token in the window, in int8: one byte per value, a float32 scale for the keys and for the values of
   * each head, and 8 bytes for position and stamp.
   */
  kvBytesPerToken: 2 * sizes.num_hidden_layers * sizes.num_key_value_heads * (sizes.head_dim + 4) + 8,
  /** The model's configuration as the engine parses it. */
  config: parseConfig(read('config.json')),
  manifest: read('kvasir.json') as {
    name: string;
    version: string;
    note: Note;
    completion: { maxTokens: number };
    chat: { maxTokens: number; note: Note };
  },
};

/** A count as the English editor shows it. */
export const counted = (value: number): string => value.toLocaleString('en');
