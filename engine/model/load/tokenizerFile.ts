/**
 * Checks a tokenizer.json before anything is built from it: types, ids within bounds, merges of tokens that exist. Does
 * not tokenize (see text/tokenizer/).
 */
import type { RequestError } from '../../protocol/errors.ts';
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
  const others = addedTokens(added);
  const { vocab } = model;
  const tokens = new Set(Object.keys(vocab));
  for (const token of tokens) {
    const id = vocab[token];
    if (!isId(id)) throw wrongId(id, `model.vocab gives ${shown(token)}`);
    if (id >= vocabSize && !others.has(token))
      throw invalid(
        `${FILE}: it has token ids above those of the model (config.json: vocab_size is ${vocabSize}); ` +
          'the file belongs to another model: download it again.',
      );
  }
  checkMerges(model.merges, tokens, model.continuing_subword_prefix);
  checkAddedIds(added as readonly { content: string; id: number }[] | undefined, vocab);
  for (const token of others) tokens.add(token);
  for (const [stage, list] of Object.entries(STAGES)) checkStage(json[stage], stage, list);
  return tokens;
}

/** A token in a message. */
function shown(token: string): string {
  return JSON.stringify(token.slice(0, 40));
}

function isId(id: unknown): id is number {
  return typeof id === 'number' && Number.isInteger(id) && id >= 0 && id < MAX_TOKENS;
}

function wrongId(id: unknown, what: string): RequestError {
  return invalid(`${FILE}: ${what} the id ${show(id)}; ids are whole numbers from 0 to ${MAX_TOKENS - 1}: ${AGAIN}.`);
}

function addedTokens(added: unknown): Set<string> {
  if (added === undefined || added === null) return new Set();
  if (!Array.isArray(added)) throw invalid(`${FILE}: added_tokens is ${show(added)}; it must be a list: ${AGAIN}.`);
  const tokens = new Set<string>();
  for (const [i, token] of added.entries()) {
    if (!isObject(token) || typeof token.content !== 'string')
      throw invalid(`${FILE}: added_tokens[${i}] has no content that is a text: ${AGAIN}.`);
    if (!isId(token.id)) throw wrongId(token.id, `added_tokens gives ${shown(token.content)}`);
    for (const flag of ['special', 'lstrip', 'rstrip', 'normalized', 'single_word'])
      if (token[flag] !== undefined && typeof token[flag] !== 'boolean')
        throw invalid(
          `${FILE}: added_tokens[${i}].${flag} is ${show(token[flag])}; it must be true or false: ${AGAIN}.`,
        );
    tokens.add(token.content);
  }
  return tokens;
}

/**
 * The reference library numbers added tokens that are not in the vocabulary itself, in their order, and ignores ids of
 * the file that differ.
 */
function checkAddedIds(added: readonly { content: string; id: number }[] | null | undefined, vocab: object): void {
  const given = new Map(Object.entries(vocab) as [string, number][]);
  let next = given.size;
  for (const { content, id } of added ?? []) {
    if (content === '') continue;
    const known = given.get(content);
    if (known === undefined && id !== next)
      throw invalid(`${FILE}: added_tokens gives ${shown(content)} the id ${id}, but its place is ${next}: ${AGAIN}.`);
    given.set(content, known ?? id);
    next = Math.max(next, (known ?? id) + 1);
  }
}

/** As the reference library: both parts of a merge and the whole must be tokens of the vocabulary. */
function checkMerges(merges: unknown, vocab: ReadonlySet<string>, subwordPrefix: unknown): void {
  if (merges === undefined || merges === null) return;
  if (!Array.isArray(merges)) throw invalid(`${FILE}: model.merges is ${show(merges)}; it must be a list: ${AGAIN}.`);
  const skipped = typeof subwordPrefix === 'string' ? subwordPrefix.length : 0;
  // A plain loop: there may be half a million.
  for (let i = 0; i < merges.length; i++) {
    const merge: unknown = merges[i];
    if (typeof merge === 'string' && merge.startsWith('#version')) continue;
    const pair: unknown = typeof merge === 'string' ? merge.split(' ') : merge;
    const [left, right]: unknown[] = Array.isArray(pair) && pair.length === 2 ? pair : [];
    if (typeof left !== 'string' || typeof right !== 'string')
      throw invalid(`${FILE}: model.merges[${i}] is ${show(merge)}; it must be a pair of tokens: ${AGAIN}.`);
    const whole = left + (skipped > 0 ? right.slice(skipped) : right);
    if (vocab.has(left) && vocab.has(right) && vocab.has(whole)) continue;
    const missing = [left, right, whole].find((token) => !vocab.has(token))!;
    throw invalid(`${FILE}: model.merges[${i}] needs the token ${shown(missing)}, which has no id: ${AGAIN}.`);
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
