/** A raw task: the caller's own prompt, as text or ids, continued as it is. */
import { t } from '@vscode/l10n';
import { RequestError } from '../protocol/errors.ts';
import type { SamplingParams } from '../protocol/tasks.ts';
import type { Layout } from '../text/prompt/layout.ts';
import { prefillRanges } from './prefillRanges.ts';
import { type PreparedRequest, samplingFor } from './preparedRequest.ts';

/**
 * Control tokens in a text prompt are read as such: whoever writes a raw prompt means them. What the model's tokenizer
 * puts before every text (its BOS) comes first, unless the text brings it itself. Ids stay as given. Throws
 * `badRequest`.
 */
export function prepareRaw(
  layout: Layout,
  prompt: string | readonly number[],
  sampling?: SamplingParams,
): PreparedRequest {
  const { tokenizer, endTokenIds } = layout.text;
  const ids = typeof prompt === 'string' ? tokenizer.encodeTemplate(prompt) : [...prompt];
  const hasHead = typeof prompt !== 'string' || tokenizer.headIds.every((id, i) => ids[i] === id);
  const promptIds = hasHead ? ids : [...tokenizer.headIds, ...ids];
  if (ids.length === 0) throw new RequestError('badRequest', t('the prompt is empty'));
  return {
    promptIds,
    blockTokens: 0,
    prefill: prefillRanges(0, [[0, promptIds.length]], layout.fewestPrefill),
    docId: null,
    sampling: samplingFor(sampling, { maxTokens: 128, temperature: 0 }, promptIds.length, layout.contextTokens),
    stopTokenIds: [...endTokenIds],
    shape: (rawText, finished) => ({ text: rawText, stop: finished }),
    notes: [],
  };
}
