/**
 * Converts text to token ids and back, with the tokenizer.json of a model folder. `encode` is for text of a user and
 * reads nothing in it as a control token. `encodeTemplate` is for our own text with control tokens.
 */
import { RequestError, reasonOf } from '../../protocol/errors.ts';
import { type ModelFiles, openModelFiles } from '../../model/load/modelFiles.ts';
import { checkTokenizerJson } from '../../model/load/tokenizerFile.ts';
import { AddedTokens, isPlainText } from './addedTokens.ts';
import { type Before, type Piece, Pieces } from './pieces.ts';
import { type AddedToken, flatSteps, type Step, type TokenizerJson } from './tokenizerJson.ts';
import { Detokenizer, Vocabulary } from './vocabulary.ts';

/** The parts of a tokenizer.json that may be missing are not needed. */
type FileJson = Partial<TokenizerJson> & Pick<TokenizerJson, 'model'>;

/** A character, with a space before it in SentencePiece, or a byte. */
const IS_SINGLE = /^(?:.|▁.|<0x[0-9A-F]{2}>)$/su;

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
  readonly #controls: AddedTokens;
  /** Leading spaces that a decoded text loses (SentencePiece puts one before every text). */
  readonly #strippedSpaces: number;

  /**
   * Reads tokenizer.json and, if it exists, tokenizer_config.json.
   * @throws RequestError `modelInvalid` or `modelUnsupported`, with the name of the file
   */
  static async load(dir: string): Promise<Tokenizer> {
    return Tokenizer.read(await openModelFiles(dir));
  }

  static async read(folder: ModelFiles): Promise<Tokenizer> {
    const json = await folder.readJson('tokenizer.json');
    if (json === null) throw new RequestError('modelInvalid', 'tokenizer.json: the file is missing');
    return Tokenizer.fromJson(json.value, (await folder.readJson('tokenizer_config.json'))?.value);
  }

  static fromJson(json: unknown, config: Record<string, unknown> = {}): Tokenizer {
    checkTokenizerJson(json as Record<string, unknown>);
    return Tokenizer.#build(json as FileJson, config);
  }

  /**
   * The tokenizer of a checked tokenizer.json with its tokens of one character and without merges, which take seconds
   * to build. Has the same faults, but other ids.
   * @throws the errors of `fromJson`
   */
  static withoutMerges(json: FileJson, config: Record<string, unknown> = {}): Tokenizer {
    const vocab = Object.fromEntries(Object.entries(json.model.vocab).filter(([token]) => IS_SINGLE.test(token)));
    return Tokenizer.#build({ ...json, model: { ...json.model, vocab, merges: [] } as TokenizerJson['model'] }, config);
  }

  static #build(file: FileJson, config: Record<string, unknown>): Tokenizer {
    const whole: TokenizerJson = {
      ...file,
      // The vocabulary decides the id of an added token that it has, as in the reference.
      added_tokens: (file.added_tokens ?? []).map((token) => ({
        ...token,
        id: file.model.vocab[token.content] ?? token.id,
      })),
      normalizer: file.normalizer ?? null,
      pre_tokenizer: file.pre_tokenizer ?? null,
      decoder: file.decoder ?? null,
      post_processor: null,
    };
    try {
      return new Tokenizer(whole, config, file.post_processor ?? null);
    } catch (error) {
      if (error instanceof RequestError) throw error;
      throw new RequestError('modelInvalid', `tokenizer.json: ${reasonOf(error)}`);
    }
  }

  private constructor(json: TokenizerJson, config: Record<string, unknown>, postProcessor: Step | null) {
    this.#pieces = new Pieces(json, config);
    this.vocabulary = new Vocabulary(json.model.vocab, json.added_tokens, this.#pieces.byteLevel);
    this.headIds = this.#findHead(postProcessor, config);
    this.#controls = new AddedTokens(json.added_tokens.filter((token) => !isPlainText(token)));
    const decoder = flatSteps(json.decoder);
    const strip = decoder.find((step) => step.type === 'Strip' && step.content === ' ');
    const metaspace = decoder.find((step) => step.type === 'Metaspace' && step.prepend_scheme !== 'never');
    this.#strippedSpaces = metaspace !== undefined ? 1 : Number(strip?.start ?? 0);
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

  /** Ids of text of a user, in which control tokens stay text. */
  encode(text: string, before: Before = 'nothing'): number[] {
    return this.#toIds(this.#pieces.encode(text, before));
  }

  encodeWithOffsets(text: string, before: Before = 'nothing'): Encoding {
    const { pieces, ends } = this.#pieces.encodeWithEnds(text, before);
    return { ids: this.#toIds(pieces), ends };
  }

  /**
   * Encodes a text that ends with a line break and is followed by `next`, a visible ASCII character. Undefined if the
   * text cannot be cut there.
   */
  encodeBefore(text: string, next: string, before: Before): Encoding | undefined {
    const found = this.#pieces.encodeBefore(text, next, before);
    return found && { ids: this.#toIds(found.pieces), ends: found.ends };
  }

  /**
   * Ids of trusted text, in which control tokens are read as such. `guard`: a character that is removed after control
   * tokens are found. Inside a text that looks like a control token it keeps that text plain (see guardLookalikes).
   */
  encodeTemplate(text: string, guard?: string, before: Before = 'nothing'): number[] {
    return this.#toIds(this.#pieces.encode(text, before, { guard }));
  }

  /** Puts `guard` inside everything that `encodeTemplate` would read as a control token, except those in `except`. */
  guardLookalikes(text: string, guard: string, except: readonly string[] = []): string {
    let guarded = text;
    for (;;) {
      const next = this.#controls.replace(guarded, (found) =>
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

  #toIds(pieces: readonly Piece[]): number[] {
    return pieces.map((piece) => (typeof piece === 'number' ? piece : (this.idOf(piece) ?? 0)));
  }
}

/** The string of a token in tokenizer_config.json, which is a string or an object with `content`. */
export function tokenText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  const content = (value as { content?: unknown } | null | undefined)?.content;
  return typeof content === 'string' ? content : undefined;
}
