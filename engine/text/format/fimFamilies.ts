/**
 * The families of code models by their fill-in-the-middle tokens: which order each was trained on, and what stands
 * around it. Tells why a tokenizer belongs to none. Does not build prompts (see fim.ts).
 */
import { t } from '@vscode/l10n';
import { RequestError } from '../../protocol/errors.ts';
import { tokenText } from '../tokenizer/tokenizer.ts';

type FimOrder = 'prefix-suffix-middle' | 'suffix-prefix-middle';

/** The three tokens, each before its text. A family without one for the middle ends the prompt with the prefix. */
interface FimTokens {
  readonly prefix: string;
  readonly suffix: string;
  readonly middle: string;
}

export interface FimLayout extends FimTokens {
  readonly name: FimFamily | 'own';
  readonly order: FimOrder;
  /** Also trained with both tokens first, then the suffix, so that the prompt can end at the cursor. */
  readonly suffixFirst?: boolean;
  readonly stop: readonly string[];
  /** What comes before the prompt: the BOS of tokenizer_config.json, or what the tokenizer puts before every text. */
  readonly head: 'bos' | 'tokenizer' | 'nothing';
  /** The suffix follows a control token without the space that SentencePiece puts before a text. */
  readonly suffixContinues?: boolean;
  /** How other files come before the current one: the mark of the repository's name, if any, and that of a path. */
  readonly repository?: { readonly name: string | null; readonly file: string };
  /** Stands before the path of the current file, also if there are no other files. */
  readonly fileMark?: string;
}

/** Part of kvasir.json. Empty texts are taken from the family of the tokens. */
export interface OwnFim extends FimTokens {
  readonly order: FimOrder | '';
  readonly file: string;
}

export type FimFamily =
  | 'qwen2.5-coder'
  | 'codegemma'
  | 'granite4'
  | 'starcoder2'
  | 'mellum'
  | 'codellama'
  | 'deepseek-coder'
  | 'codestral'
  | 'seed-coder';

interface Family extends FimLayout {
  readonly name: FimFamily;
  /** Other families have the same three tokens, but not these. */
  readonly when?: (knows: (token: string) => boolean) => boolean;
}

const BARRED = { prefix: '<|fim_prefix|>', suffix: '<|fim_suffix|>', middle: '<|fim_middle|>' };
const TAGS = { prefix: '<fim_prefix>', suffix: '<fim_suffix>', middle: '<fim_middle>' };
const PSM = 'prefix-suffix-middle';
const SPM = 'suffix-prefix-middle';

/** The first one that fits counts. Where a layout is published is said with it. */
const FAMILIES: readonly Family[] = [
  // ai.google.dev/gemma/docs/codegemma/prompt-structure
  {
    name: 'codegemma',
    ...BARRED,
    order: PSM,
    when: (knows) => knows('<|file_separator|>'),
    stop: ['<|file_separator|>', '<eos>'],
    head: 'tokenizer',
  },
  // Model cards of Granite 4.0: the order of Qwen, with other marks for files.
  {
    name: 'granite4',
    ...BARRED,
    order: PSM,
    when: (knows) => knows('<|filename|>'),
    suffixFirst: true,
    stop: ['<|end_of_text|>', '<|fim_pad|>', '<|filename|>', '<|reponame|>'],
    head: 'nothing',
  },
  // README of Qwen2.5-Coder, "fill in the middle" and "repository level". Yi-Coder has the same tokens and order.
  {
    name: 'qwen2.5-coder',
    ...BARRED,
    order: PSM,
    suffixFirst: true,
    stop: [
      '<|endoftext|>',
      '<|fim_pad|>',
      '<|repo_name|>',
      '<|file_sep|>',
      '<|im_start|>',
      '<|im_end|>',
      '<|fim_prefix|>',
      '<|fim_suffix|>',
      '<|fim_middle|>',
    ],
    head: 'nothing',
    repository: { name: '<|repo_name|>', file: '<|file_sep|>' },
  },
  // Model card of Mellum-4b-base, "fill in the middle with additional files". It has StarCoder's tokens, and roles.
  {
    name: 'mellum',
    ...TAGS,
    order: SPM,
    when: (knows) => knows('<filename>') && knows('<assistant>'),
    stop: ['<|endoftext|>', '<filename>'],
    head: 'tokenizer',
    repository: { name: null, file: '<filename>' },
    fileMark: '<filename>',
  },
  // Model cards of StarCoder, StarCoder2, Granite Code and Granite 3.3. A tokenizer with the mark of file names, but
  // without the marks of StarCoder's other data, may be of a model with Mellum's order.
  {
    name: 'starcoder2',
    ...TAGS,
    order: PSM,
    when: (knows) => knows('<file_sep>') || knows('<gh_stars>') || !knows('<filename>'),
    suffixFirst: true,
    stop: ['<|endoftext|>', '<file_sep>', '<fim_prefix>', '<fim_suffix>', '<fim_middle>'],
    head: 'nothing',
  },
  // Model card of CodeLlama, and `prefix_suffix_middle` in the tokenizer of transformers.
  {
    name: 'codellama',
    prefix: '▁<PRE>',
    suffix: '▁<SUF>',
    middle: '▁<MID>',
    order: PSM,
    stop: ['</s>', '▁<EOT>'],
    head: 'bos',
    suffixContinues: true,
  },
  // README of DeepSeek-Coder, "code insertion".
  {
    name: 'deepseek-coder',
    prefix: '<｜fim▁begin｜>',
    suffix: '<｜fim▁hole｜>',
    middle: '<｜fim▁end｜>',
    order: PSM,
    stop: ['<｜end▁of▁sentence｜>'],
    head: 'bos',
  },
  // mistral-common, `encode_fim`.
  {
    name: 'codestral',
    prefix: '[PREFIX]',
    suffix: '[SUFFIX]',
    middle: '',
    order: SPM,
    stop: ['</s>'],
    head: 'bos',
    suffixContinues: true,
  },
  // Technical report of Seed-Coder (arXiv 2506.03524), "fill-in-the-middle".
  {
    name: 'seed-coder',
    prefix: '<[fim-prefix]>',
    suffix: '<[fim-suffix]>',
    middle: '<[fim-middle]>',
    order: SPM,
    stop: ['<[end▁of▁sentence]>'],
    head: 'tokenizer',
  },
];

/** A name that says what a token is for, in any family. */
const NAMED = /^▁?[<[][^<>\s]*(?:fim|prefix|suffix|middle|infill)[^<>\s]*[>\]]$/i;
const MAX_NAMED = 4;

/** The layout, or why there is none, as the end of a sentence. Null: the tokenizer has no such tokens. */
export type FoundFim = { readonly layout: FimLayout } | { readonly layout?: undefined; readonly fault: string | null };

/**
 * The tokens that tokenizer_config.json names, as that of CodeLlama does. Null if it does not name all three. GGUF files
 * say it with ids.
 */
export function namedFim(config: Record<string, unknown>): FimTokens | null {
  const [prefix, suffix, middle] = ['prefix', 'suffix', 'middle'].map((name) => tokenText(config[`${name}_token`]));
  return prefix && suffix && middle ? { prefix, suffix, middle } : null;
}

/**
 * `own`: what kvasir.json says. `names`: tokens of the tokenizer, for the reason. `named`: see namedFim. Tokens of no
 * known family are put in the order of llama.cpp.
 * @throws RequestError `modelInvalid` if kvasir.json says half of it, or names a token that the tokenizer does not have
 */
export function findFim(
  knows: (token: string) => boolean,
  own: OwnFim | null,
  names: Iterable<string>,
  named: FimTokens | null = null,
): FoundFim {
  const has = ({ prefix, suffix, middle }: FimTokens): boolean =>
    [prefix, suffix, middle].every((token) => token === '' || knows(token));
  const alike = FAMILIES.filter(has);
  const family = alike.find(({ when }) => when === undefined || when(knows));
  if (own !== null && Object.values(own).some((text) => text !== '')) return ownLayout(knows, own, family ?? alike[0]);
  if (family !== undefined) return { layout: family };
  if (named !== null && has(named))
    return { layout: { name: 'own', ...named, order: PSM, stop: [], head: 'tokenizer' } };
  const known = alike[0]
    ? [alike[0].prefix, alike[0].suffix, alike[0].middle]
    : [...names].filter((name) => NAMED.test(name));
  if (known.length === 0) return { fault: null };
  return {
    fault: [
      t(
        'its fill-in-the-middle tokens ({0}) belong to no known family of models',
        known.slice(0, MAX_NAMED).join(', '),
      ),
      t('kvasir.json can name them and their order (completion.fim)'),
    ].join('; '),
  };
}

function ownLayout(knows: (token: string) => boolean, own: OwnFim, family: Family | undefined): FoundFim {
  const refuse = (field: string, problem: string): never => {
    throw new RequestError('modelInvalid', `kvasir.json: completion.fim${field} ${problem}`);
  };
  const order = own.order || family?.order || refuse('.order', `is missing; known are "${PSM}", "${SPM}"`);
  const tokens = {
    prefix: own.prefix || family?.prefix || refuse('.prefix', 'is missing; it must be a token of tokenizer.json'),
    suffix: own.suffix || family?.suffix || refuse('.suffix', 'is missing; it must be a token of tokenizer.json'),
    middle: own.middle || family?.middle || '',
  };
  if (tokens.middle === '' && order === PSM) refuse('.middle', 'is missing; it must be a token of tokenizer.json');
  for (const [field, token] of Object.entries({ ...tokens, file: own.file }))
    if (token !== '' && !knows(token))
      refuse(`.${field}`, `is ${JSON.stringify(token)}, which is not a token of tokenizer.json`);
  const { suffixFirst: _, fileMark: __, repository: ___, ...rest } = family ?? { stop: [], head: 'tokenizer' as const };
  return {
    layout: {
      ...rest,
      ...tokens,
      name: 'own',
      order,
      stop: [...rest.stop, ...(own.file === '' ? [] : [own.file])],
      ...(own.file === '' ? {} : { fileMark: own.file, repository: { name: null, file: own.file } }),
    },
  };
}

/** Whether the prompt may have other files of the repository. */
export function readsRepository({ repository }: FimLayout, knows: (token: string) => boolean): boolean {
  return repository !== undefined && (repository.name === null || knows(repository.name)) && knows(repository.file);
}
