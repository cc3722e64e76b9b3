/** Takes out of the normalizer of a tokenizer.json what the library does not do as the reference. Normalises nothing. */
import { isPlainText } from './addedTokens.ts';
import { flatSteps, type Step, type TokenizerJson, unsupported } from './tokenizerJson.ts';

const isPrepend = ({ type }: Step): boolean => type === 'Prepend';

/** Removes the step Prepend of the normaliser, if it is the first one, and returns the text that it prepends. */
export function takePrefix(json: TokenizerJson): string {
  const normalizer = json.normalizer;
  if (normalizer === null) return '';
  const steps = normalizer.type === 'Sequence' ? (normalizer.normalizers as Step[]) : [normalizer];
  const first = steps[0];
  if (flatSteps({ type: 'Sequence', normalizers: steps.slice(first?.type === 'Prepend' ? 1 : 0) }).some(isPrepend))
    throw unsupported('the normalizer Prepend follows another one');
  if (first?.type !== 'Prepend') return '';
  json.normalizer = { type: 'Sequence', normalizers: steps.slice(1) };
  return first.prepend as string;
}

/**
 * A control token that matches normalised text must not come out of other text, or a user could write one.
 * @throws RequestError `modelUnsupported`
 */
export function checkNormalizedControls({ added_tokens: added, normalizer }: TokenizerJson): void {
  const control = added.find((token) => (token.normalized ?? !token.special) && !isPlainText(token));
  const keepsMarks = ({ type, pattern, content }: Step): boolean =>
    type === 'Prepend' ||
    type === 'NFC' ||
    (type === 'Replace' &&
      typeof (pattern as { String?: string }).String === 'string' &&
      /^[\s▁]+$/.test(String(content)));
  const step = control && flatSteps(normalizer).find((one) => !keepsMarks(one));
  if (step !== undefined)
    throw unsupported(`the normalizer ${step.type} applies to the control token ${control?.content}`);
}

/**
 * Normalizers whose result the library or this reader would give otherwise than the reference. Before a Metaspace that
 * puts its sign in front of the first text, the reference takes a text for the first one by the place of its first
 * character in the source, and a replacement of another length moves that.
 * @throws RequestError `modelUnsupported`
 */
export function checkNormalizer({ normalizer }: TokenizerJson, isSpacedFirst: boolean): void {
  for (const { type, pattern, content } of flatSteps(normalizer)) {
    if (type === 'Precompiled') throw unsupported('the normalizer Precompiled');
    const replaced = (pattern as { String?: string } | undefined)?.String;
    const keepsLength = type !== 'Replace' || replaced?.length === String(content).length;
    if (isSpacedFirst && !keepsLength)
      throw unsupported('a Replace by text of another length before a Metaspace with prepend_scheme "first"');
  }
}
