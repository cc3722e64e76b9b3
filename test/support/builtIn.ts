/**
 * What tests expect of the built-in model, whichever it is: its own files' figures, and what follows from them by formulas that
 * are written down here once more, and are not the engine's; `config` alone is as the engine reads it.
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

/** Of config.json, what these formulas go by: a qwen3 whose output layer is its embedding. */
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

/** Queries and output, keys and values, the three matrices of the MLP; norms of the layer and of its heads. */
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
  /** Values of keys and values that a token has over all layers. */
  kvValues: 2 * sizes.num_hidden_layers * sizes.num_key_value_heads * sizes.head_dim,
  /** In the window, in int8: a byte a value, a float32 scale for each head's keys and values, and 8 bytes for position and stamp. */
  kvBytesPerToken: 2 * sizes.num_hidden_layers * sizes.num_key_value_heads * (sizes.head_dim + 4) + 8,
  /** As what the engine has to say of a model takes it. */
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
