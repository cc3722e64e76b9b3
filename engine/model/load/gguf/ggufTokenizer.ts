/**
 * Writes the tokenizer in the metadata of a GGUF file as a tokenizer.json and a tokenizer_config.json. Refuses ways to
 * split text that are not known by name, because the model would read other ids. Does not tokenize.
 */
import type { Json } from '../configFields.ts';
import { invalid, unsupported } from '../modelFolder.ts';
import type { GgufFields } from './ggufFields.ts';
import { byteLevel, SPLITTINGS } from './splittings.ts';
import { mergesOf } from './spmMerges.ts';

const KEY = 'tokenizer.ggml.';
const TOKENS = `${KEY}tokens`;
const MERGES = `${KEY}merges`;
const SCORES = `${KEY}scores`;
const TYPES = `${KEY}token_type`;
/** Keys whose lists are read. */
export const TOKENIZER_LISTS: ReadonlySet<string> = new Set([TOKENS, MERGES, SCORES, TYPES]);

/** Values of the list of token types. */
const UNKNOWN = 2;
const CONTROL = 3;
const USER_DEFINED = 4;
const UNUSED = 5;
const BYTE = 6;

export interface GgufTokenizer {
  readonly tokenizer: Json;
  readonly config: Json;
  /** Begin of a text, and what ends an answer. */
  readonly generation: Json;
}

/** `vocabSize`: rows of the embedding. */
export function ggufTokenizer(fields: GgufFields, vocabSize: number): GgufTokenizer {
  const model = fields.text(`${KEY}model`);
  if (model !== 'gpt2' && model !== 'llama') {
    if (model === undefined) throw fields.wrong(`${KEY}model`, '"gpt2" or "llama"');
    throw unsupported(
      `${fields.file}: ${KEY}model is ${JSON.stringify(model.slice(0, 40))}; the supported tokenizers are gpt2 and llama.`,
    );
  }
  const tokens = fields.texts(TOKENS);
  const types = fields.numbers(TYPES);
  if (tokens.length === 0 || tokens.length > vocabSize)
    throw invalid(
      `${fields.file}: ${TOKENS} has ${tokens.length} tokens, but the model has ${vocabSize}: download the file again.`,
    );
  if (types !== undefined && types.length !== tokens.length)
    throw invalid(
      `${fields.file}: ${TYPES} has ${types.length} entries, but there are ${tokens.length} tokens: download the file again.`,
    );
  const typeOf = (id: number): number => types?.[id] ?? 1;
  const special = specialTokens(fields, tokens, model === 'llama');
  const vocab: Record<string, number> = Object.create(null) as Record<string, number>;
  const added: Json[] = [];
  for (const [id, content] of tokens.entries()) {
    const type = typeOf(id);
    if (type === UNUSED) continue;
    vocab[content] = id;
    if (type !== CONTROL && type !== USER_DEFINED && type !== UNKNOWN) continue;
    const none = { single_word: false, lstrip: false, rstrip: false, normalized: false };
    added.push({ id, content, ...none, special: type !== USER_DEFINED });
  }
  const isPlain = (id: number): boolean => ![UNKNOWN, CONTROL, UNUSED, BYTE].includes(typeOf(id));
  const whole = model === 'llama' ? spm(fields, tokens, vocab, isPlain, special) : bpe(fields, vocab);
  const { addBos, ...tokenizer } = whole;
  const ends = [special.eos, idOf(fields, 'eot_token_id', tokens), idOf(fields, 'eom_token_id', tokens)];
  const template = fields.text('tokenizer.chat_template');
  return {
    tokenizer: { version: '1.0', added_tokens: added, post_processor: null, ...tokenizer },
    config: {
      add_bos_token: fields.flag(`${KEY}add_bos_token`, addBos),
      ...namedTokens(special, tokens),
      ...fimTokens(fields, tokens),
      ...(template === undefined ? {} : { chat_template: template }),
    },
    generation: {
      bos_token_id: special.bos ?? null,
      eos_token_id: [...new Set(ends.filter((id) => id !== undefined))],
    },
  };
}

type Pipeline = { normalizer: Json | null; pre_tokenizer: Json | null; decoder: Json; model: Json; addBos: boolean };

function bpe(fields: GgufFields, vocab: Json): Pipeline {
  const name = fields.text(`${KEY}pre`);
  const splitting = SPLITTINGS.get(name ?? '');
  if (splitting === undefined)
    throw unsupported(
      `${fields.file}: ${KEY}pre is ${name === undefined ? 'missing' : JSON.stringify(name.slice(0, 40))}; it says how ` +
        `text is split, and ${[...SPLITTINGS.keys()].join(', ')} are supported: choose the original model instead.`,
    );
  return {
    normalizer: splitting.normalizer,
    pre_tokenizer: { type: 'Sequence', pretokenizers: splitting.steps },
    decoder: byteLevel(true),
    model: {
      type: 'BPE',
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: splitting.ignoreMerges,
      vocab,
      merges: fields.texts(MERGES),
    },
    addBos: splitting.addBos,
  };
}

/** As transformers converts a SentencePiece model of the type BPE. */
function spm(
  fields: GgufFields,
  tokens: readonly string[],
  vocab: Json,
  isPlain: (id: number) => boolean,
  special: SpecialTokens,
): Pipeline {
  const scores = fields.numbers(SCORES);
  if (scores === undefined || scores.length !== tokens.length)
    throw fields.wrong(SCORES, `a list of ${tokens.length} numbers`);
  if (fields.has(`${KEY}precompiled_charsmap`))
    throw unsupported(`${fields.file}: ${KEY}precompiled_charsmap changes characters, which is not supported.`);
  const merges = mergesOf(tokens, scores, isPlain);
  if (merges === null)
    throw invalid(
      `${fields.file}: ${TOKENS} consist of each other in more ways than in any known model: choose another file.`,
    );
  const spaced = fields.flag(`${KEY}add_space_prefix`, true);
  const prepend: Json[] = spaced ? [{ type: 'Prepend', prepend: '▁' }] : [];
  const strip: Json[] = spaced ? [{ type: 'Strip', content: ' ', start: 1, stop: 0 }] : [];
  return {
    normalizer: {
      type: 'Sequence',
      normalizers: [...prepend, { type: 'Replace', pattern: { String: ' ' }, content: '▁' }],
    },
    pre_tokenizer: null,
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        ...strip,
      ],
    },
    model: {
      type: 'BPE',
      unk_token: special.unknown === undefined ? null : tokens[special.unknown],
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
      vocab,
      merges,
    },
    addBos: true,
  };
}

/** Ids of tokens. Undefined if the file does not name one. */
interface SpecialTokens {
  readonly bos: number | undefined;
  readonly eos: number | undefined;
  readonly unknown: number | undefined;
  readonly padding: number | undefined;
}

/** `isSpm`: files need not say the ids that are usual in SentencePiece. */
function specialTokens(fields: GgufFields, tokens: readonly string[], isSpm: boolean): SpecialTokens {
  const usual = (id: number): number | undefined => (isSpm && id < tokens.length ? id : undefined);
  return {
    bos: idOf(fields, 'bos_token_id', tokens) ?? usual(1),
    eos: idOf(fields, 'eos_token_id', tokens) ?? usual(2),
    unknown: idOf(fields, 'unknown_token_id', tokens) ?? usual(0),
    padding: idOf(fields, 'padding_token_id', tokens),
  };
}

function idOf(fields: GgufFields, name: string, tokens: readonly string[]): number | undefined {
  const key = `${KEY}${name}`;
  if (!fields.has(key)) return undefined;
  const id = fields.count(key, { least: 0 });
  if (id >= tokens.length)
    throw invalid(
      `${fields.file}: ${key} is ${id}, but there are only ${tokens.length} tokens: download the file again.`,
    );
  return id;
}

/** What fills in the middle, if the file says it: in the fields of CodeLlama's tokenizer_config.json. */
function fimTokens(fields: GgufFields, tokens: readonly string[]): Json {
  const [prefix, suffix, middle] = ['pre', 'suf', 'mid'].map((name) => idOf(fields, `fim_${name}_token_id`, tokens));
  if (prefix === undefined || suffix === undefined || middle === undefined) return {};
  return { prefix_token: tokens[prefix], suffix_token: tokens[suffix], middle_token: tokens[middle] };
}

function namedTokens({ bos, eos, unknown, padding }: SpecialTokens, tokens: readonly string[]): Json {
  const named = { bos_token: bos, eos_token: eos, unk_token: unknown, pad_token: padding };
  return Object.fromEntries(
    Object.entries(named).flatMap(([name, id]) => (id === undefined ? [] : [[name, tokens[id]]])),
  );
}
