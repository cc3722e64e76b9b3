/** A raw task: the caller's own prompt, as text or ids, continued as it is. */
import { RequestError } from '../errors.ts';
import type { SamplingParams } from '../protocol.ts';
import type { Layout } from '../text/layout.ts';
import { type PreparedRequest, resolveSampling } from './preparedRequest.ts';

/** Control tokens in a text prompt are read as such: whoever writes a raw prompt means them. Nothing is put before it. Throws `badRequest`. */
export function prepareRaw(layout: Layout, prompt: string | readonly number[], sampling?: SamplingParams): PreparedRequest {
  const { tokenizer, endTokenIds } = layout.text;
  const promptIds = typeof prompt === 'string' ? tokenizer.encodeTemplate(prompt) : [...prompt];
  if (promptIds.length === 0) throw new RequestError('badRequest', 'the prompt is empty');
  return {
    promptIds,
    blockTokens: 0,
    docId: null,
    sampling: resolveSampling(sampling, { maxTokens: 128, temperature: 0 }, promptIds.length, layout.contextTokens),
    stopTokenIds: [...endTokenIds],
    shape: (rawText, finished) => ({ text: rawText, stop: finished }),
    notes: [],
  };
}
