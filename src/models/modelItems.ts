/** The lines of `Kvasir: Choose Model`: what each model is, needs and can do, in words. Pure. */
import type { InspectedModel } from '../../engine/protocol.ts';
import { formatBytes, formatCount } from '../format.ts';
import type { Translate } from '../translate.ts';
import { memoryNeeded, type Recommendation } from './recommend.ts';

export interface ModelLine {
  label: string;
  description: string;
  detail: string;
}

/** The user's language. */
export interface Speech {
  t: Translate;
  language: string;
}

interface Found {
  name: string;
  /** The one that `kvasir.model` names. */
  current: boolean;
  builtIn: boolean;
  availableBytes: number | null;
}

/** A model that can run. `name` is how it was found; `availableBytes` is what is free beside the model in use, null while that is not known. */
export function describeInspected(model: InspectedModel, { name, current, builtIn, availableBytes }: Found, { t, language }: Speech): ModelLine {
  const memoryBytes = memoryNeeded({ residentBytes: model.weightsBytes.int8, kvBytesPerToken: model.kvBytesPerToken.int8 }, model.contextTokens);
  const tooMuch = availableBytes !== null && !current && memoryBytes > availableBytes;
  return {
    label: `$(${current ? 'check' : 'circle-large-outline'}) ${builtIn ? model.name : name}`,
    description: [current ? t('in use') : '', builtIn ? t('built in') : ''].filter(Boolean).join(' · '),
    detail: [
      t('{0} parameters', formatParameters(model.parameters, t, language)),
      t('{0} tokens of context', formatCount(model.contextTokens, language)),
      tooMuch ? `$(warning) ${t('needs {0} of memory, more than is free now', formatBytes(memoryBytes, language))}` : t('needs {0} of memory', formatBytes(memoryBytes, language)),
      abilities(model, t),
    ].join(' · '),
  };
}

/** One that cannot, with the engine's reason. */
export function describeRefused(reason: string, { name, current }: Found, { t }: Speech): ModelLine {
  return { label: `$(error) ${name}`, description: current ? t('in use') : '', detail: reason };
}

/** With what the estimate was made from, so that nobody takes it for a measurement. */
export function describeRecommended({ model, memoryBytes, tokensPerSecond }: Recommendation, readBytesPerSecond: number | null, { t, language }: Speech): ModelLine {
  const bytes = (value: number) => formatBytes(value, language);
  return {
    label: `$(cloud-download) ${model.id}`,
    description: `${t('{0} parameters', formatParameters(model.parameters, t, language))} · ${model.licence}`,
    detail: [
      model.code ? t('made for code: completions, chat and edits') : t('general: chat and edits'),
      t('needs {0} of memory', bytes(memoryBytes)),
      ...(tokensPerSecond === null || readBytesPerSecond === null ? [] : [t('estimate: at most {0} tokens/s ({1} of weights, read at {2}/s)', formatCount(tokensPerSecond, language), bytes(model.residentBytes), bytes(readBytesPerSecond))]),
    ].join(' · '),
  };
}

function abilities({ canComplete, canChat, canEdit }: InspectedModel, t: Translate): string {
  if (canComplete && canChat) return canEdit ? t('completions, chat and edits') : t('completions and chat, no edits');
  if (canComplete) return t('completions only: no chat template');
  if (canChat) return t('chat only: not trained to fill in the middle');
  return t('neither completions nor chat: no control tokens for either');
}

/** "7.5 million", "1.5 billion" */
export function formatParameters(parameters: number, t: Translate, language: string): string {
  const [unit, text] = parameters >= 1e9 ? ([1e9, '{0} billion'] as const) : ([1e6, '{0} million'] as const);
  const value = parameters / unit;
  const shown = value.toLocaleString(language, { maximumFractionDigits: value < 10 ? 1 : 0 });
  return text === '{0} billion' ? t('{0} billion', shown) : t('{0} million', shown);
}
