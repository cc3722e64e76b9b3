/** Faults of the files that are made from a GGUF file are said as faults of that file. */
import { expect, test } from 'vitest';
import { ownWords } from '../../../../../engine/model/load/gguf/ownWords.ts';

const said = ownWords('x.gguf', 'qwen2', 'x.gguf.kvasir.json');

test.each([
  ['config.json: rope_theta is 0; it must be more.', 'x.gguf: qwen2.rope.freq_base is 0; it must be more.'],
  [
    'config.json: num_key_value_heads is 3; num_attention_heads (4) must be a multiple of it.',
    'x.gguf: qwen2.attention.head_count_kv is 3; qwen2.attention.head_count (4) must be a multiple of it.',
  ],
  [
    'tokenizer.json: model.vocab gives "config.json \\" hidden_size" the id -1.',
    'x.gguf: tokenizer.ggml.tokens gives "config.json \\" hidden_size" the id -1.',
  ],
  [
    'kvasir.json: completion.fim.prefix is missing; it must be a token of tokenizer.json.',
    'x.gguf.kvasir.json: completion.fim.prefix is missing; it must be a token of x.gguf.',
  ],
  ['generation_config.json: eos_token_id is 9.', 'x.gguf: tokenizer.ggml.eos_token_id is 9.'],
  ['config.json.gguf and /a/config.json cannot be read.', 'config.json.gguf and /a/config.json cannot be read.'],
])('%s', (message, expected) => {
  expect(said(message)).toBe(expected);
  expect(said(expected)).toBe(expected);
});
