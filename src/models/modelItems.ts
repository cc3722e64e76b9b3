/** The lines of `Kvasir: Choose Model`: what each model is, needs and can do. Pure. */
import type { InspectedModel } from '../../engine/protocol/stats.ts';
import type { WeightPrecision } from '../config.ts';
import type { Speech, Translate } from '../format.ts';
import { downloadLabel } from './downloadLines.ts';
import type { Recommendation } from './recommend.ts';

export interface ModelLine {
  label: string;
  description: string;
  detail: string;
}

interface Found {
  name: string;
  /** The model that `kvasir.model` names. */
  current: boolean;
  builtIn: boolean;
  /** In words: where it comes from. */
  source?: string;
  availableBytes: number | null;
  /** Of its weights on the disk; 0 if that is not known. */
  bytes: number;
  /** The precision set for weights. */
  precision: WeightPrecision;
}

/** A model that can run. A line shows about 85 characters, so abilities come first, then figures. */
export function describeInspected(
  model: InspectedModel,
  { name, current, builtIn, availableBytes, bytes, precision }: Found,
  speech: Speech,
): ModelLine {
  const { t, numbers } = speech;
  const [needed, smallest] = [precision, 'int4' as const].map((form) => numbers.bytes(model.memoryBytes[form]));
  const fits = (form: WeightPrecision) =>
    availableBytes === null || current || model.memoryBytes[form] <= availableBytes;
  return {
    label: `$(${current ? 'check' : 'circle-large-outline'}) ${builtIn ? model.name : name}`,
    description: [
      current ? t('in use') : '',
      builtIn ? t('built in') : '',
      formatParameters(model.parameters, speech),
      `${model.architecture} ${model.format}`,
      bytes > 0 ? numbers.bytes(bytes) : '',
    ]
      .filter(Boolean)
      .join(' · '),
    detail: [
      abilities(model, t),
      ...(fits(precision)
        ? [t('reads {0} tokens', numbers.count(model.contextTokens)), t('{0} of memory when running', needed!)]
        : [
            fits('int4')
              ? `$(warning) ${t('needs {0}, more than is free; {1} in 4 bits', needed!, smallest!)}`
              : `$(warning) ${t('needs {0}, more than is free', needed!)}`,
          ]),
    ].join(' · '),
  };
}

/** A model that has not been inspected yet. */
export function describePending({ name, current }: Found, { t }: Speech): ModelLine {
  return { label: `$(loading~spin) ${name}`, description: current ? t('in use') : '', detail: ' ' };
}

/** A model that cannot run, with the engine's reason. */
export function describeRefused(reason: string, { name, current, source }: Found, { t }: Speech): ModelLine {
  const description = [current ? t('in use') : '', source ?? ''].filter(Boolean).join(' · ');
  return { label: `$(error) ${name}`, description, detail: reason };
}

/**
 * A model that can be downloaded. Shows what the estimate was made from, if the line is short enough, so that nobody
 * takes it for a measurement.
 * @param partBytes what an earlier download has left
 */
export function describeRecommended(
  { model, precision, memoryBytes, tokensPerSecond }: Recommendation,
  set: WeightPrecision,
  readBytesPerSecond: number | null,
  partBytes: number,
  speech: Speech,
): ModelLine {
  const {
    t,
    numbers: { bytes, count },
  } = speech;
  const speed =
    tokensPerSecond === null || readBytesPerSecond === null
      ? undefined
      : { max: count(tokensPerSecond), reads: bytes(readBytesPerSecond) };
  return {
    label: `$(cloud-download) ${downloadLabel(model, speech)}`,
    description: [
      partBytes > 0
        ? t('{0} are here already', bytes(partBytes))
        : model.code
          ? t('completions, chat, edits')
          : t('chat, edits; no completions'),
      model.licence,
    ].join(' · '),
    detail: [
      precision === set
        ? t('needs {0}', bytes(memoryBytes))
        : t(
            'needs {0} with {1} ({2}: {3})',
            bytes(memoryBytes),
            precision,
            set,
            bytes(model.residentBytes[set] + model.cacheBytes),
          ),
      ...(!speed
        ? []
        : [
            precision === set
              ? t(
                  'estimate: at most {0} tokens/s ({1}/s ÷ {2})',
                  speed.max,
                  speed.reads,
                  bytes(model.residentBytes[precision]),
                )
              : t('estimate: at most {0} tokens/s', speed.max),
          ]),
    ].join(' · '),
  };
}

function abilities(
  { canComplete, canChat, canEdit, completionFault, chatFault }: InspectedModel,
  t: Translate,
): string {
  if (canComplete && canChat) return canEdit ? t('completions, chat, edits') : t('completions, chat, no edits');
  if (canComplete && chatFault !== null) return t('completions only: {0}', chatFault);
  if (canComplete) return t('completions only, no chat template');
  if (canChat) return completionFault === null ? t('chat only, no completions') : t('chat only: {0}', completionFault);
  if (completionFault !== null) return t('neither completions nor chat: {0}', completionFault);
  return t('neither completions nor chat');
}

/** "7.5 million parameters", "26 million parameters" */
export function formatParameters(parameters: number, { t, numbers }: Speech): string {
  const billions = parameters >= 1e9;
  const value = parameters / (billions ? 1e9 : 1e6);
  const shown = value < 10 ? numbers.figure(value) : numbers.count(value);
  return billions ? t('{0} billion parameters', shown) : t('{0} million parameters', shown);
}
