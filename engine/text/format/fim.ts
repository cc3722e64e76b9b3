/**
 * Builds fill-in-the-middle prompts. Each family of code models has its own control tokens and order. Selects the
 * family by the control tokens of the tokenizer. Does not choose the text around the cursor (see completionPrompt.ts).
 */
import { RequestError } from '../../protocol/errors.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';

interface Family {
  name: FimFamily;
  /** In order: control tokens, `prefix` and `suffix`. */
  parts: string[];
  /** The same with the suffix first, so that the prompt ends at the cursor. Only for models that are trained on it. */
  suffixFirst?: string[];
  stop: string[];
  bos: boolean;
  /** The suffix follows a control token without the space that SentencePiece puts before a text. */
  suffixContinues?: boolean;
  repository?: { name: string; file: string };
}

export type FimFamily = 'qwen2.5-coder' | 'starcoder2' | 'codellama' | 'deepseek-coder' | 'codestral';

const FAMILIES: Family[] = [
  {
    name: 'qwen2.5-coder',
    parts: ['<|fim_prefix|>', 'prefix', '<|fim_suffix|>', 'suffix', '<|fim_middle|>'],
    suffixFirst: ['<|fim_prefix|>', '<|fim_suffix|>', 'suffix', '<|fim_middle|>', 'prefix'],
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
    bos: false,
    repository: { name: '<|repo_name|>', file: '<|file_sep|>' },
  },
  {
    name: 'starcoder2',
    parts: ['<fim_prefix>', 'prefix', '<fim_suffix>', 'suffix', '<fim_middle>'],
    suffixFirst: ['<fim_prefix>', '<fim_suffix>', 'suffix', '<fim_middle>', 'prefix'],
    stop: ['<|endoftext|>', '<file_sep>', '<fim_prefix>', '<fim_suffix>', '<fim_middle>'],
    bos: false,
  },
  {
    name: 'codellama',
    parts: ['▁<PRE>', 'prefix', '▁<SUF>', 'suffix', '▁<MID>'],
    stop: ['</s>', '▁<EOT>'],
    bos: true,
    suffixContinues: true,
  },
  {
    name: 'deepseek-coder',
    parts: ['<｜fim▁begin｜>', 'prefix', '<｜fim▁hole｜>', 'suffix', '<｜fim▁end｜>'],
    stop: ['<｜end▁of▁sentence｜>'],
    bos: true,
  },
  {
    name: 'codestral',
    parts: ['[SUFFIX]', 'suffix', '[PREFIX]', 'prefix'],
    stop: ['</s>'],
    bos: true,
    suffixContinues: true,
  },
];

const isText = (part: string): boolean => part === 'prefix' || part === 'suffix';

function familyOf(knows: (token: string) => boolean): Family | undefined {
  return FAMILIES.find(({ parts }) => parts.every((part) => isText(part) || knows(part)));
}

/** What a tokenizer with these tokens can be used for. */
export function fimOffers(knows: (token: string) => boolean): { fim: boolean; readsRepository: boolean } {
  const family = familyOf(knows);
  const marks = family?.repository;
  return { fim: family !== undefined, readsRepository: marks !== undefined && knows(marks.name) && knows(marks.file) };
}

export class Fim {
  readonly family: FimFamily;
  /** Whether the prompt ends with the prefix. */
  readonly prefixLast: boolean;
  readonly stopTokenIds: readonly number[];
  readonly #family: Family;
  readonly #parts: readonly string[];
  readonly #tokenizer: Tokenizer;
  readonly #bos: number[];

  /** The family whose control tokens the tokenizer has. Undefined if it has none. */
  static of(tokenizer: Tokenizer, options: { suffixFirst?: boolean; bosTokenId?: number } = {}): Fim | undefined {
    const family = familyOf((token) => tokenizer.idOf(token) !== undefined);
    return family && new Fim(family, tokenizer, options);
  }

  private constructor(
    family: Family,
    tokenizer: Tokenizer,
    { suffixFirst = false, bosTokenId }: { suffixFirst?: boolean; bosTokenId?: number },
  ) {
    if (suffixFirst && family.suffixFirst === undefined)
      throw new RequestError(
        'modelInvalid',
        `kvasir.json: completion.order is "suffixFirst", but models with ${family.name} tokens have no such order`,
      );
    this.family = family.name;
    this.#family = family;
    this.#parts = suffixFirst ? (family.suffixFirst as string[]) : family.parts;
    this.prefixLast = this.#parts.at(-1) === 'prefix';
    this.#tokenizer = tokenizer;
    this.#bos = family.bos && bosTokenId !== undefined ? [bosTokenId] : [];
    this.stopTokenIds = family.stop.flatMap((token) => tokenizer.idOf(token) ?? []);
  }

  /** The control tokens of a prompt, by name. */
  get controls(): { token: string; tokenId: number }[] {
    return this.#parts
      .filter((part) => !isText(part))
      .map((token) => ({ token, tokenId: this.#tokenizer.idOf(token) as number }));
  }

  encodeSuffix(suffix: string): number[] {
    return this.#tokenizer.encode(suffix, this.#family.suffixContinues ?? false);
  }

  /** Builds the prompt. `head`: a file block or other files of the repository. It comes after the BOS of the family. */
  build(prefixIds: readonly number[], suffixIds: readonly number[], head: readonly number[] = []): number[] {
    const ids = [...this.#bos, ...head];
    for (const part of this.#parts) {
      if (part === 'prefix') ids.push(...prefixIds);
      else if (part === 'suffix') ids.push(...suffixIds);
      else ids.push(this.#tokenizer.idOf(part) as number);
    }
    return ids;
  }

  /**
   * The head of a prompt with other files of the repository. Ends with the path of the current file. Undefined if the
   * family has no such layout.
   */
  repositoryHead(
    name: string,
    files: readonly { path: string; text: string }[],
    currentPath: string,
  ): number[] | undefined {
    const marks = this.#family.repository;
    const nameId = marks && this.#tokenizer.idOf(marks.name);
    const fileId = marks && this.#tokenizer.idOf(marks.file);
    if (nameId === undefined || fileId === undefined) return undefined;
    const ids = [nameId, ...this.#tokenizer.encode(`${name}\n`)];
    for (const { path, text } of files) ids.push(fileId, ...this.#tokenizer.encode(`${path}\n${text}\n`));
    ids.push(fileId, ...this.#tokenizer.encode(`${currentPath}\n`));
    return ids;
  }
}
