/** Describes how the KV rows of a file are stored. Pure. */
import type { CodecQuality, ModelInfo } from '../../engine/protocol/stats.ts';
import type { Speech } from '../format.ts';

/** Of the loaded model with the configured codec, as measured. */
export function compressionText(
  { codec, klMean, bound, top1, compression, numTokens }: CodecQuality,
  { t, numbers }: Speech,
): string {
  if (klMean > bound)
    return t(
      '{0} is not used: with this model its mean KL divergence would be {1}, more than {2}',
      codec,
      numbers.scientific(klMean),
      numbers.scientific(bound, 0),
    );
  // Part of `kvzip`, used for conversations; not a setting of its own.
  const name = codec === 'h2o' ? t('h2o, for long conversations') : codec;
  return [
    t(
      '{0}: {1} times smaller than 16 bits, picks the same next token {2} of the time',
      name,
      numbers.decimal(compression),
      numbers.percent(top1),
    ),
    t('measured with this model on {0} tokens', numbers.count(numTokens)),
  ].join(', ');
}

/** One line for each of a file's codecs, as named in its statistics; empty if there is nothing to say. */
export function codecNotes(codecs: readonly string[], model: ModelInfo | null, speech: Speech): string {
  return codecs
    .map((codec) => codecNote(codec, model, speech))
    .filter(Boolean)
    .join('\n');
}

function codecNote(codec: string, model: ModelInfo | null, speech: Speech): string {
  const { t } = speech;
  if (codec === 'sketch')
    return t('Longer than memory: the rows are on disk, and a request reads the ones that it attends to most.');
  const quality = model?.compressed?.find((each) => each.codec === codec);
  if (quality) return compressionText(quality, speech);
  return codec === 'int8' ? t('As computed, without loss.') : '';
}
