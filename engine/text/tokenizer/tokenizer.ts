/**
 * Converts text to token ids and back, with the tokenizer.json of a model folder. `encode` is for text of a user:
 * nothing in it is read as a control token. `encodeTemplate` is for our own template text with control tokens. Neither
 * puts anything before the text.
 */
import { RequestError, reasonOf } from '../../protocol/errors.ts';
import { ModelFolder } from '../../model/load/modelFolder.ts';
import { Detokenizer } from './detokenizer.ts';
import {
  type AddedToken,
  BYTE_CHARACTERS,
  Pieces,
  type Step,
  type TokenizerJson,
  byteValue,
  flatSteps,
} from './pieces.ts';

/** Characters that tokens are grouped by. */
const BEGINNING = 2;

/** Token ids with, for each, the UTF-16 offset of the text at which it ends. */
export interface Encoding {
  ids: number[];
  ends: number[];
}

export class Tokenizer {
  /** One more than the largest id. */
  readonly vocabSize: number;
  /** Control tokens and other added ones, by id. */
  readonly addedTokens: ReadonlyMap<number, AddedToken>;
  /** What the model's own tokenizer puts before a text: its BOS, or nothing. `encode` and `encodeTemplate` do not. */
  readonly headIds: readonly number[];
  readonly #pieces: Pieces;
  readonly #idOf: Map<string, number>;
  /** Token string by id, as the vocabulary spells it. */
  readonly #tokens: string[] = [];
  readonly #bytes: Uint8Array[] = [];
  #beginnings: Map<string, number[]> | null = null;
  readonly #byteOfCharacter = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));
  readonly #addedPattern: RegExp | undefined;
  /** Leading spaces that a decoded text loses (SentencePiece puts one before every text). */
  readonly #strippedSpaces: number;

  /** Reads tokenizer.json and, if there is one, tokenizer_config.json; `modelInvalid` names the file at fault. */
  static async load(dir: string): Promise<Tokenizer> {
    return Tokenizer.read(await ModelFolder.open(dir));
  }

  static async read(folder: ModelFolder): Promise<Tokenizer> {
    const json = await folder.readJson('tokenizer.json');
    if (json === null) throw new RequestError('modelInvalid', 'tokenizer.json: the file is missing');
    return Tokenizer.fromJson(json.value, (await folder.readJson('tokenizer_config.json'))?.value);
  }

  static fromJson(json: unknown, config: Record<string, unknown> = {}): Tokenizer {
    const file = json as Partial<TokenizerJson>;
    const model = file.model;
    if (typeof model !== 'object' || model === null || typeof model.vocab !== 'object')
      throw new RequestError('modelInvalid', 'tokenizer.json: model.vocab is missing');
    if (model.type !== undefined && model.type !== 'BPE')
      throw new RequestError(
        'modelUnsupported',
        `tokenizer.json: model.type is ${JSON.stringify(model.type).slice(0, 80)}; supported is "BPE"`,
      );
    const whole: TokenizerJson = {
      ...file,
      model,
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
    this.#idOf = new Map(Object.entries(json.model.vocab));
    this.addedTokens = new Map(json.added_tokens.map((token) => [token.id, token]));
    for (const token of json.added_tokens) this.#idOf.set(token.content, token.id);
    for (const [token, id] of this.#idOf) this.#tokens[id] = token;
    this.vocabSize = this.#tokens.length;
    this.headIds = this.#findHead(postProcessor, config);
    const contents = json.added_tokens.map((token) => token.content).filter((content) => content !== '');
    this.#addedPattern = contents.length === 0 ? undefined : anyOf(contents);
    const strip = flatSteps(json.decoder).find((step) => step.type === 'Strip' && step.content === ' ');
    this.#strippedSpaces = strip === undefined ? 0 : Number(strip.start ?? 0);
  }

  /** Whether texts may be cut at line starts: see `Pieces`. */
  get hasLineBoundaries(): boolean {
    return this.#pieces.hasLineBoundaries;
  }

  /** Ids of plain text. `continues`: the text goes on from other text, so nothing is put before it. */
  encode(text: string, continues = false): number[] {
    return this.#toIds(this.#pieces.encode(text, continues));
  }

  encodeWithOffsets(text: string, continues = false): Encoding {
    const tokens = this.#pieces.encode(text, continues);
    return { ids: this.#toIds(tokens), ends: this.#pieces.ends(text, tokens, continues) };
  }

  /**
   * The same for a text that `next` follows, a visible ASCII character after a line break; undefined if it cannot be
   * cut there.
   */
  encodeBefore(text: string, next: string, continues: boolean): Encoding | undefined {
    const tokens = this.#pieces.encodeBefore(text, next, continues);
    return tokens && { ids: this.#toIds(tokens), ends: this.#pieces.ends(text, tokens, continues) };
  }

  /**
   * Ids of trusted text, control tokens read as such. `guard` is a character to drop from the text once control tokens
   * have been found: put inside a look-alike, it keeps that as text. `continues` as in `encode`.
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
      const id = this.#idOf.get(match[0]) as number;
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

  /**
   * The text with `guard` put inside whatever `encodeTemplate` would read as a control token, but for those in
   * `except`.
   */
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

  /** Ids out of the vocabulary decode to nothing. */
  decode(ids: readonly number[], options: { skipSpecial?: boolean } = {}): string {
    const detokenizer = this.createDetokenizer();
    let text = '';
    for (const id of ids) if (!(options.skipSpecial && this.addedTokens.get(id)?.special)) text += detokenizer.push(id);
    text += detokenizer.flush();
    for (let i = 0; i < this.#strippedSpaces && text.startsWith(' '); i++) text = text.slice(1);
    return text;
  }

  /** Text that generated ids add to a prompt: unlike `decode`, a space at the start is kept. */
  createDetokenizer(): Detokenizer {
    return new Detokenizer((id) => this.bytesOf(id));
  }

  /** ASCII text as the vocabulary spells it. */
  spelling(text: string): string {
    return this.#pieces.byteLevel
      ? Array.from(text, (character) => BYTE_CHARACTERS[character.charCodeAt(0)]).join('')
      : text.replaceAll(' ', '▁');
  }

  /**
   * Whether there is a token for each character of ASCII text, so that whatever has been said of it, it can be gone on
   * with.
   */
  canSpell(text: string): boolean {
    return [...text].every(
      (character) => this.#idOf.has(this.spelling(character)) || this.#byteToken(character) !== undefined,
    );
  }

  /** Of an ASCII character, where the vocabulary has tokens for bytes. */
  #byteToken(character: string): number | undefined {
    return this.#pieces.byteLevel
      ? undefined
      : this.#idOf.get(`<0x${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}>`);
  }

  /** '' for ids out of the vocabulary; what a byte's token stands for. */
  spellingOf(id: number): string {
    const token = this.#tokens[id] ?? '';
    const byte = this.#pieces.byteLevel ? undefined : byteValue(token);
    return byte === undefined ? token : this.spelling(String.fromCharCode(byte));
  }

  /** Tokens that begin with this spelling of ASCII text, or that it begins with; no control token. */
  tokensToward(spelling: string): number[] {
    const ids: number[] = [];
    const ofByte = this.#byteToken(spelling[0] === '▁' ? ' ' : spelling);
    if (ofByte !== undefined) ids.push(ofByte);
    const isPlain = (id: number): boolean => !this.addedTokens.has(id);
    for (let length = 1; length < spelling.length; length++) {
      const id = this.#idOf.get(spelling.slice(0, length));
      if (id !== undefined && isPlain(id)) ids.push(id);
    }
    for (const id of this.#byBeginning.get(spelling.slice(0, BEGINNING)) ?? [])
      if (this.#tokens[id]!.startsWith(spelling) && isPlain(id)) ids.push(id);
    if (spelling.length < BEGINNING)
      for (const [beginning, group] of this.#byBeginning)
        if (beginning.length > spelling.length && beginning.startsWith(spelling)) ids.push(...group.filter(isPlain));
    return ids;
  }

  /** Tokens by their first characters, made when it is asked for first: some 20 ms for 150,000. */
  get #byBeginning(): ReadonlyMap<string, readonly number[]> {
    if (this.#beginnings) return this.#beginnings;
    this.#beginnings = new Map();
    for (const [id, token] of this.#tokens.entries()) {
      if (token === undefined) continue;
      const beginning = token.slice(0, BEGINNING);
      const group = this.#beginnings.get(beginning);
      if (group) group.push(id);
      else this.#beginnings.set(beginning, [id]);
    }
    return this.#beginnings;
  }

  /** The id of a token by its exact string, added tokens included. */
  idOf(token: string): number | undefined {
    return this.#idOf.get(token);
  }

  /** The bytes that a token adds to a text; empty for ids out of the vocabulary. */
  bytesOf(id: number): Uint8Array {
    const known = this.#bytes[id];
    if (known !== undefined) return known;
    const token = this.#tokens[id];
    if (token === undefined) return new Uint8Array(0);
    const bytes = this.#spell(token, this.addedTokens.has(id));
    this.#bytes[id] = bytes;
    return bytes;
  }

  #spell(token: string, added: boolean): Uint8Array {
    if (this.#pieces.byteLevel) {
      const bytes = added ? undefined : Array.from(token, (character) => this.#byteOfCharacter.get(character));
      return bytes === undefined || bytes.includes(undefined)
        ? new TextEncoder().encode(token)
        : Uint8Array.from(bytes as number[]);
    }
    const byte = byteValue(token);
    return byte === undefined ? new TextEncoder().encode(token.replaceAll('▁', ' ')) : Uint8Array.of(byte);
  }

  /** tokenizer_config.json decides if it says anything; else the template of the post-processor. */
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
    return head
      .map((token) => (token === undefined ? undefined : this.#idOf.get(token)))
      .filter((id) => id !== undefined);
  }

  #toIds(tokens: readonly string[]): number[] {
    return tokens.map((token) => this.#idOf.get(token) ?? 0);
  }
}

/** The string of a token in tokenizer_config.json: plain, or an object with `content`. */
export function tokenText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  const content = (value as { content?: unknown } | null | undefined)?.content;
  return typeof content === 'string' ? content : undefined;
}

/** Matches any of the texts, the longest where several start at one place. */
function anyOf(texts: readonly string[]): RegExp {
  const alternatives = [...texts]
    .sort((a, b) => b.length - a.length)
    .map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'));
  return new RegExp(alternatives.join('|'), 'g');
}
