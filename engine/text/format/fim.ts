/**
 * Builds fill-in-the-middle prompts in the layout of a family of code models (see fimFamilies.ts). Does not choose the
 * text around the cursor (see completionPrompt.ts).
 */
import { RequestError } from '../../protocol/errors.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import { type FimLayout, findFim } from './fimFamilies.ts';

const isText = (part: string): boolean => part === 'prefix' || part === 'suffix';

interface FimOptions {
  suffixFirst?: boolean;
  bosTokenId?: number;
}

export class Fim {
  readonly family: FimLayout['name'];
  /** Whether the prompt ends with the prefix. */
  readonly prefixLast: boolean;
  readonly stopTokenIds: readonly number[];
  readonly #layout: FimLayout;
  readonly #parts: readonly string[];
  readonly #tokenizer: Tokenizer;
  readonly #bos: readonly number[];

  /** The family whose control tokens the tokenizer has. Undefined if it has none. */
  static of(tokenizer: Tokenizer, options: FimOptions = {}): Fim | undefined {
    const { layout } = findFim((token) => tokenizer.idOf(token) !== undefined, null, []);
    return layout && new Fim(layout, tokenizer, options);
  }

  /** The tokenizer must have the tokens of the layout. */
  constructor(layout: FimLayout, tokenizer: Tokenizer, { suffixFirst = false, bosTokenId }: FimOptions) {
    if (suffixFirst && !layout.suffixFirst)
      throw new RequestError(
        'modelInvalid',
        layout.name === 'own'
          ? 'kvasir.json: completion.order is "suffixFirst", but completion.fim gives another order; remove one of them'
          : `kvasir.json: completion.order is "suffixFirst", but models with ${layout.name} tokens have no such order`,
      );
    this.family = layout.name;
    this.#layout = layout;
    this.#parts = partsOf(layout, suffixFirst);
    this.prefixLast = this.#parts.at(-1) === 'prefix';
    this.#tokenizer = tokenizer;
    const bos = bosTokenId === undefined ? [] : [bosTokenId];
    this.#bos = layout.head === 'bos' ? bos : layout.head === 'tokenizer' ? tokenizer.headIds : [];
    this.stopTokenIds = layout.stop.flatMap((token) => tokenizer.idOf(token) ?? []);
  }

  /** The control tokens of a prompt, by name. */
  get controls(): { token: string; tokenId: number }[] {
    return this.#parts
      .filter((part) => !isText(part))
      .map((token) => ({ token, tokenId: this.#tokenizer.idOf(token) as number }));
  }

  encodeSuffix(suffix: string): number[] {
    return this.#tokenizer.encode(suffix, this.#layout.suffixContinues ? 'text' : 'token');
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

  /** The head of a prompt without other files: the path of the file, if the family marks it. */
  fileHead(path: string): number[] {
    const { fileMark } = this.#layout;
    const mark = fileMark === undefined ? undefined : this.#tokenizer.idOf(fileMark);
    return mark === undefined ? [] : [mark, ...this.#tokenizer.encode(`${path}\n`, 'token')];
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
    const marks = this.#layout.repository;
    if (marks === undefined) return undefined;
    const nameId = marks.name === null ? null : this.#tokenizer.idOf(marks.name);
    const fileId = this.#tokenizer.idOf(marks.file);
    if (nameId === undefined || fileId === undefined) return undefined;
    const ids = nameId === null ? [] : [nameId, ...this.#tokenizer.encode(`${name}\n`, 'token')];
    for (const { path, text } of files) ids.push(fileId, ...this.#tokenizer.encode(`${path}\n${text}\n`, 'token'));
    ids.push(fileId, ...this.#tokenizer.encode(`${currentPath}\n`, 'token'));
    return ids;
  }
}

/** In order: control tokens, `prefix` and `suffix`. */
function partsOf({ prefix, suffix, middle, order }: FimLayout, suffixFirst: boolean): string[] {
  const end = middle === '' ? [] : [middle];
  if (suffixFirst) return [prefix, suffix, 'suffix', ...end, 'prefix'];
  return order === 'prefix-suffix-middle'
    ? [prefix, 'prefix', suffix, 'suffix', ...end]
    : [suffix, 'suffix', prefix, 'prefix', ...end];
}
