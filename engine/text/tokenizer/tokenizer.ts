/**
 * Converts text to token ids and back, with the tokenizer.json of a model folder. `encode` is for text of a user and
 * reads nothing in it as a control token. `encodeTemplate` is for our own text with control tokens.
 */
import { RequestError, reasonOf } from '../../protocol/errors.ts';
import { ModelFolder } from '../../model/load/modelFolder.ts';
import { checkTokenizerJson } from '../../model/load/tokenizerFile.ts';
import { type AddedToken, flatSteps, Pieces, type Step, type TokenizerJson } from './pieces.ts';
import { Detokenizer, Vocabulary } from './vocabulary.ts';

export interface Encoding {
  ids: number[];
  /** For each id, the UTF-16 offset in the text at which its token ends. */
  ends: number[];
}

export class Tokenizer {
  readonly vocabulary: Vocabulary;
  /** The ids that the model expects before a text: its BOS, or nothing. `encode` and `encodeTemplate` add none. */
  readonly headIds: readonly number[];
  readonly #pieces: Pieces;
  readonly #addedPattern: RegExp | undefined;
  /** Leading spaces that a decoded text loses (SentencePiece puts one before every text). */
  readonly #strippedSpaces: number;

  /**
   * Reads tokenizer.json and, if it exists, tokenizer_config.json.
   * @throws RequestError `modelInvalid` or `modelUnsupported`, with the name of the file
   */
  static async load(dir: string): Promise<Tokenizer> {
    return Tokenizer.read(await ModelFolder.open(dir));
  }

  static async read(folder: ModelFolder): Promise<Tokenizer> {
    const json = await folder.readJson('tokenizer.json');
    if (json === null) throw new RequestError('modelInvalid', 'tokenizer.json: the file is missing');
    return Tokenizer.fromJson(json.value, (await folder.readJson('tokenizer_config.json'))?.value);
  }

  static fromJson(json: unknown, config: Record<string, unknown> = {}): Tokenizer {
    checkTokenizerJson(json as Record<string, unknown>);
    const file = json as Partial<TokenizerJson> & Pick<TokenizerJson, 'model'>;
    const whole: TokenizerJson = {
      ...file,
      added_tokens: file.added_tokens ?? [],
      normalizer: file.normalizer ?? null,
      pre_tokenizer: file.pre_tokenizer ?? null,
      decoder: file.decoder ?? null,
      post_processor: null,
    };
    try {
      return new Tokenizer(whole, config, file.post_processor ?? null);
    } catch (error) {
      throw new RequestError('modelInvalid', `tokenizer.json: ${reasonOf(error)}`);
    }
  }

  private constructor(json: TokenizerJson, config: Record<string, unknown>, postProcessor: Step | null) {
    this.#pieces = new Pieces(json, config);
    this.vocabulary = new Vocabulary(json.model.vocab, json.added_tokens, this.#pieces.byteLevel);
    this.headIds = this.#findHead(postProcessor, config);
    const contents = json.added_tokens.map((token) => token.content).filter((content) => content !== '');
    this.#addedPattern = contents.length === 0 ? undefined : anyOf(contents);
    const strip = flatSteps(json.decoder).find((step) => step.type === 'Strip' && step.content === ' ');
    this.#strippedSpaces = strip === undefined ? 0 : Number(strip.start ?? 0);
  }

  /** One more than the largest id. */
  get vocabSize(): number {
    return this.vocabulary.size;
  }

  /** Control tokens and other added tokens, by id. */
  get addedTokens(): ReadonlyMap<number, AddedToken> {
    return this.vocabulary.addedTokens;
  }

  /** Whether texts may be cut at line starts (see Pieces). */
  get hasLineBoundaries(): boolean {
    return this.#pieces.hasLineBoundaries;
  }

  /** Ids of plain text. `continues`: the text continues another one, so nothing is put before it. */
  encode(text: string, continues = false): number[] {
    return this.#toIds(this.#pieces.encode(text, continues));
  }

  encodeWithOffsets(text: string, continues = false): Encoding {
    const tokens = this.#pieces.encode(text, continues);
    return { ids: this.#toIds(tokens), ends: this.#pieces.ends(text, tokens, continues) };
  }

  /**
   * Encodes a text that ends with a line break and is followed by `next`, a visible ASCII character. Undefined if the
   * text cannot be cut there.
   */
  encodeBefore(text: string, next: string, continues: boolean): Encoding | undefined {
    const tokens = this.#pieces.encodeBefore(text, next, continues);
    return tokens && { ids: this.#toIds(tokens), ends: this.#pieces.ends(text, tokens, continues) };
  }

  /**
   * Ids of trusted text, in which control tokens are read as such. `guard`: a character that is removed after control
   * tokens are found. Inside a text that looks like a control token it keeps that text plain (see guardLookalikes).
   */
  encodeTemplate(text: string, guard?: string, continues = false): number[] {
    const ids: number[] = [];
    const plain = (part: string): void => {
      for (const id of this.encode(
        guard === undefined ? part : part.replaceAll(guard, ''),
        continues && ids.length === 0,
      ))
        ids.push(id);
    };
    let position = 0;
    for (const match of this.#addedPattern === undefined ? [] : text.matchAll(this.#addedPattern)) {
      const id = this.idOf(match[0]) as number;
      const token = this.addedTokens.get(id) as AddedToken;
      const before = text.slice(position, match.index);
      plain(token.lstrip ? before.trimEnd() : before);
      ids.push(id);
      position = match.index + match[0].length;
      if (token.rstrip) position += text.slice(position).length - text.slice(position).trimStart().length;
    }
    plain(text.slice(position));
    return ids;
  }

  /** Puts `guard` inside everything that `encodeTemplate` would read as a control token, except those in `except`. */
  guardLookalikes(text: string, guard: string, except: readonly string[] = []): string {
    if (this.#addedPattern === undefined) return text;
    let guarded = text;
    for (;;) {
      const next = guarded.replace(this.#addedPattern, (found) =>
        except.includes(found) ? found : [...found].join(guard),
      );
      if (next === guarded) return guarded;
      guarded = next;
    }
  }

  /** The text of the ids. Ids outside the vocabulary add nothing. */
  decode(ids: readonly number[], options: { skipSpecial?: boolean } = {}): string {
    const detokenizer = this.createDetokenizer();
    let text = '';
    for (const id of ids) if (!(options.skipSpecial && this.addedTokens.get(id)?.special)) text += detokenizer.push(id);
    text += detokenizer.flush();
    for (let i = 0; i < this.#strippedSpaces && text.startsWith(' '); i++) text = text.slice(1);
    return text;
  }

  /** For ids that continue a prompt. Unlike `decode`, it keeps a space at the start. */
  createDetokenizer(): Detokenizer {
    return new Detokenizer((id) => this.vocabulary.bytesOf(id));
  }

  /** The id of a token by its exact string. Also finds added tokens. */
  idOf(token: string): number | undefined {
    return this.vocabulary.idOf(token);
  }

  /** From tokenizer_config.json if it says so, otherwise from the template of the post-processor. */
  #findHead(postProcessor: Step | null, config: Record<string, unknown>): number[] {
    let head: (string | undefined)[] = [];
    if (typeof config.add_bos_token === 'boolean') {
      if (config.add_bos_token) head = [tokenText(config.bos_token)];
    } else {
      const template = flatSteps(postProcessor).find((step) => step.type === 'TemplateProcessing');
      const single = Array.isArray(template?.single)
        ? (template.single as { SpecialToken?: { id?: string }; Sequence?: unknown }[])
        : [];
      const text = single.findIndex((part) => part.Sequence !== undefined);
      head = single.slice(0, Math.max(0, text)).map((part) => part.SpecialToken?.id);
    }
    return head.map((token) => (token === undefined ? undefined : this.idOf(token))).filter((id) => id !== undefined);
  }

  #toIds(tokens: readonly string[]): number[] {
    return tokens.map((token) => this.idOf(token) ?? 0);
  }
}

/** The string of a token in tokenizer_config.json, which is a string or an object with `content`. */
export function tokenText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  const content = (value as { content?: unknown } | null | undefined)?.content;
  return typeof content === 'string' ? content : undefined;
}

/** Matches any of the texts. Where several match at one place, the longest one wins. */
function anyOf(texts: readonly string[]): RegExp {
  const alternatives = [...texts]
    .sort((a, b) => b.length - a.length)
    .map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'));
  return new RegExp(alternatives.join('|'), 'g');
}
