/**
 * Checks a tokenizer.json before anything is built from it: types, ids within bounds, merges of tokens that exist. Does
 * not tokenize (see text/tokenizer/).
 */
import { isObject, show } from './configFields.ts';
import { invalid, unsupported } from './modelFolder.ts';

const FILE = 'tokenizer.json';
/** Most tokens of a vocabulary. The largest known one has 262,144. Tables by token id take no more entries. */
export const MAX_TOKENS = 2 ** 21;
const AGAIN = 'download the file again';
/** The stages of a tokenizer, and the name of the list of stages in one of the type Sequence. */
const STAGES = {
  normalizer: 'normalizers',
  pre_tokenizer: 'pretokenizers',
  decoder: 'decoders',
  post_processor: 'processors',
} as const;

/**
 * The strings of all tokens. `vocabSize`: ids that the model has, if known. Only added tokens may have higher ones,
 * because they do not come out of ordinary text.
 * @throws RequestError `modelInvalid` or `modelUnsupported` with the first fault
 */
export function checkTokenizerJson(json: Record<string, unknown>, vocabSize = MAX_TOKENS): ReadonlySet<string> {
  const { model, added_tokens: added } = json;
  if (!isObject(model))
    throw invalid(`${FILE}: model is missing. Only the Hugging Face tokenizers format is supported.`);
  if (model.type !== undefined && model.type !== 'BPE')
    throw unsupported(`${FILE}: model.type is ${show(model.type)}; only "BPE" is supported.`);
  if (!isObject(model.vocab)) throw invalid(`${FILE}: model.vocab is missing; it must map tokens to ids: ${AGAIN}.`);
  const tokens = addedTokens(added);
  for (const [token, id] of Object.entries(model.vocab)) {
    checkId(id, `model.vocab gives ${shown(token)}`);
    if (id >= vocabSize && !tokens.has(token))
      throw invalid(
        `${FILE}: it has token ids above those of the model (config.json: vocab_size is ${vocabSize}); ` +
          'the file belongs to another model: download it again.',
      );
    tokens.add(token);
  }
  checkMerges(model.merges, model.vocab, model.continuing_subword_prefix);
  for (const [stage, list] of Object.entries(STAGES)) checkStage(json[stage], stage, list);
  return tokens;
}

/** A token in a message. */
function shown(token: string): string {
  return JSON.stringify(token.slice(0, 40));
}

function checkId(id: unknown, what: string): asserts id is number {
  if (typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id >= MAX_TOKENS)
    throw invalid(`${FILE}: ${what} the id ${show(id)}; ids are whole numbers from 0 to ${MAX_TOKENS - 1}: ${AGAIN}.`);
}

function addedTokens(added: unknown): Set<string> {
  if (added === undefined || added === null) return new Set();
  if (!Array.isArray(added)) throw invalid(`${FILE}: added_tokens is ${show(added)}; it must be a list: ${AGAIN}.`);
  const tokens = new Set<string>();
  for (const [i, token] of added.entries()) {
    if (!isObject(token) || typeof token.content !== 'string')
      throw invalid(`${FILE}: added_tokens[${i}] has no content that is a text: ${AGAIN}.`);
    checkId(token.id, `added_tokens gives ${shown(token.content)}`);
    for (const flag of ['special', 'lstrip', 'rstrip', 'normalized', 'single_word'])
      if (token[flag] !== undefined && typeof token[flag] !== 'boolean')
        throw invalid(
          `${FILE}: added_tokens[${i}].${flag} is ${show(token[flag])}; it must be true or false: ${AGAIN}.`,
        );
    tokens.add(token.content);
  }
  return tokens;
}

/** As the reference library: both parts of a merge and the whole must be tokens of the vocabulary. */
function checkMerges(merges: unknown, vocab: Record<string, unknown>, subwordPrefix: unknown): void {
  if (merges === undefined || merges === null) return;
  if (!Array.isArray(merges)) throw invalid(`${FILE}: model.merges is ${show(merges)}; it must be a list: ${AGAIN}.`);
  const skipped = typeof subwordPrefix === 'string' ? subwordPrefix.length : 0;
  for (const [i, merge] of merges.entries()) {
    if (typeof merge === 'string' && merge.startsWith('#version')) continue;
    const parts: unknown = typeof merge === 'string' ? merge.split(' ') : merge;
    if (!Array.isArray(parts) || parts.length !== 2 || parts.some((part) => typeof part !== 'string'))
      throw invalid(`${FILE}: model.merges[${i}] is ${show(merge)}; it must be a pair of tokens: ${AGAIN}.`);
    const [left, right] = parts as [string, string];
    for (const token of [left, right, left + right.slice(skipped)])
      if (!Object.hasOwn(vocab, token))
        throw invalid(`${FILE}: model.merges[${i}] needs the token ${shown(token)}, which has no id: ${AGAIN}.`);
  }
}

/** Nesting is bounded (see boundedJson.ts). */
function checkStage(stage: unknown, where: string, list: string): void {
  if (stage === undefined || stage === null) return;
  if (!isObject(stage) || (stage.type !== undefined && typeof stage.type !== 'string'))
    throw invalid(`${FILE}: ${where} is not an object with a type: ${AGAIN}.`);
  if (stage.type !== 'Sequence') return;
  const steps = stage[list];
  if (!Array.isArray(steps)) throw invalid(`${FILE}: ${where}.${list} must be a list: ${AGAIN}.`);
  for (const [i, step] of steps.entries()) checkStage(step, `${where}.${list}[${i}]`, list);
}
