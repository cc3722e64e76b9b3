/**
 * Splits text into tokens with the pipeline of a tokenizer.json. In text of a user, control tokens stay text. Adds to
 * @huggingface/tokenizers what the reference does with added tokens and spaces, offsets, and safe places to cut a text.
 */
import { Tokenizer as HfTokenizer } from '@huggingface/tokenizers';
import { AddedTokens, isPlainText, keepsLines } from './addedTokens.ts';
import { checkNormalizedControls, checkNormalizer, takePrefix } from './normalizer.ts';
import { type Metaspace, readPreTokenizer } from './preTokenizer.ts';
import { bytesAsText, byteValue, sourceOffsets, utf8Size } from './spelling.ts';
import { type AddedToken, flatSteps, type Step, type TokenizerJson, unsupported } from './tokenizerJson.ts';

/** What stands before a text: no text at all, an added token, or text that it continues. */
export type Before = 'nothing' | 'token' | 'text';

/** The string of a token in the vocabulary, or the id of an added token. */
export type Piece = string | number;

/** How text with control tokens is read. */
export interface Controls {
  /** A character that is removed once control tokens are found (see Tokenizer.guardLookalikes). */
  guard?: string;
}

/** A part of a text, between added tokens that match text as it is. */
interface Part {
  start: number;
  source: string;
  /** With the text that the normaliser puts before it, of this length. */
  normalized: string;
  prefix: number;
  /** In order, sections of `normalized`. */
  sections: Split[];
}

interface Split {
  start: number;
  end: number;
  /** An added token. */
  id?: number;
  /** What the pre-tokenizer makes of the section, after `spaces` spaces that it puts before it. */
  text: string;
  spaces: number;
  pieces: string[];
}

interface Library {
  normalizer: { normalize(text: string): string } | null;
  pre_tokenizer: { pre_tokenize(text: string, options: object): string[] } | null;
  model: { _call(pieces: string[]): string[]; tokens_to_ids: Map<string, number> };
}

/** Longer pieces are rare, so they are not cached. */
const MAX_CACHED_PIECE = 64;
const MAX_CACHED_PIECES = 50_000;
const SPACE = '▁';

export class Pieces {
  /**
   * Token strings spell bytes in GPT-2's alphabet. Otherwise characters, with "▁" for a space and <0xHH> for a byte.
   */
  readonly byteLevel: boolean;
  /**
   * Whether a text may be cut between a line break and a visible ASCII character, so that both sides have the tokens of
   * the whole. The left side must be encoded with `encodeBefore`.
   */
  readonly hasLineBoundaries: boolean;
  readonly #library: Library;
  /** The text that the normaliser puts before every text: "▁" in tokenizers like SentencePiece. */
  readonly #prefix: string;
  readonly #metaspace: Metaspace | undefined;
  readonly #fusedToken: string | undefined;
  readonly #composes: boolean;
  readonly #splitsLines: boolean;
  /** Added tokens that match text as it is, and those that match normalised text. */
  readonly #all: { raw: AddedTokens; normalized: AddedTokens };
  /** The same without control tokens. */
  readonly #plain: { raw: AddedTokens; normalized: AddedTokens };
  readonly #cache = new Map<string, string[]>();

  constructor(json: TokenizerJson, config: object) {
    const plain = structuredClone(json);
    const added = plain.added_tokens;
    plain.added_tokens = [];
    // With ignore_merges, whole pieces are looked up in the vocabulary, and would match control tokens.
    if (plain.model.ignore_merges) for (const { content } of added) delete plain.model.vocab[content];
    if (plain.model.continuing_subword_prefix) throw unsupported('model has a continuing_subword_prefix');
    const { fuse_unk: fuses, unk_token: unknown, byte_fallback: hasBytes } = plain.model;
    this.#fusedToken = fuses && !hasBytes ? (unknown ?? undefined) : undefined;
    this.#prefix = takePrefix(plain);
    checkNormalizedControls(json);
    const { step, metaspace } = readPreTokenizer(plain.pre_tokenizer);
    checkNormalizer(plain, metaspace?.scheme === 'first');
    plain.pre_tokenizer = step;
    this.#metaspace = metaspace;
    this.#library = new HfTokenizer(plain, config) as unknown as Library;
    this.#all = this.#sets(added);
    const words = added.filter(isPlainText);
    this.#plain = this.#sets(words);

    const steps = flatSteps(plain.pre_tokenizer);
    this.byteLevel =
      steps.some((step) => step.type === 'ByteLevel') ||
      flatSteps(json.decoder).some((step) => step.type === 'ByteLevel');
    this.#composes = flatSteps(plain.normalizer).some((step) => step.type !== 'Replace' && step.type !== undefined);
    // Without a pre-tokenizer the whole text is one BPE word. Merges cross no line break if no token contains one.
    this.#splitsLines =
      plain.pre_tokenizer === null &&
      !this.byteLevel &&
      this.#fusedToken === undefined &&
      Object.keys(plain.model.vocab).every((token) => token === '\n' || !token.includes('\n'));
    this.hasLineBoundaries =
      words.every(keepsLines) &&
      (this.#splitsLines || (plain.pre_tokenizer !== null && this.#probeLineBoundaries(plain, steps)));
  }

  /** Tokens of a text. Without `controls`, control tokens stay text. */
  encode(text: string, before: Before, controls?: Controls): Piece[] {
    return this.#toPieces(this.#parts(text, before, controls));
  }

  /**
   * Tokens of a text, and the UTF-16 offset after each one. A token that ends inside a character gets the end of the
   * character.
   */
  encodeWithEnds(text: string, before: Before): { pieces: Piece[]; ends: number[] } {
    const parts = this.#parts(text, before);
    return { pieces: this.#toPieces(parts), ends: this.#ends(parts) };
  }

  /**
   * The same for a text that is followed by `next`, a visible ASCII character. Undefined if it cannot be cut there.
   */
  encodeBefore(text: string, next: string, before: Before): { pieces: Piece[]; ends: number[] } | undefined {
    if (this.#splitsLines) return this.encodeWithEnds(text, before);
    const parts = this.#parts(text + next, before);
    const last = parts.at(-1)?.sections.at(-1);
    if (last?.pieces.pop() !== next) return undefined;
    return { pieces: this.#toPieces(parts), ends: this.#ends(parts) };
  }

  #sets(tokens: readonly AddedToken[]): { raw: AddedTokens; normalized: AddedTokens } {
    const isNormalized = (token: AddedToken): boolean => token.normalized ?? !token.special;
    return {
      raw: new AddedTokens(tokens.filter((token) => !isNormalized(token))),
      normalized: new AddedTokens(tokens.filter(isNormalized), ({ content }) => this.#normalize(content, 'token')),
    };
  }

  #parts(text: string, before: Before, controls?: Controls): Part[] {
    const added = controls === undefined ? this.#plain : this.#all;
    return added.raw.split(text).map(({ start, end, id }) => {
      const source = text.slice(start, end);
      if (id !== undefined)
        return { start, source, normalized: source, prefix: 0, sections: [addedSection(0, source.length, id)] };
      const place = start === 0 ? before : 'token';
      const normalized = this.#normalize(source, place);
      const prefix = normalized === '' || place === 'text' ? 0 : this.#prefix.length;
      const sections = added.normalized.split(normalized).map((section) => {
        if (section.id !== undefined) return addedSection(section.start, section.end, section.id);
        const own = normalized.slice(section.start, section.end);
        return {
          ...section,
          ...this.#split(
            controls?.guard === undefined ? own : own.replaceAll(controls.guard, ''),
            section.start === 0 ? place : 'token',
          ),
        };
      });
      return { start, source, normalized, prefix, sections };
    });
  }

  #toPieces(parts: readonly Part[]): Piece[] {
    const pieces: Piece[] = [];
    for (const { sections } of parts)
      for (const section of sections) {
        if (section.id !== undefined) pieces.push(section.id);
        for (const piece of section.pieces) for (const token of this.#encodePiece(piece)) pieces.push(token);
      }
    return pieces;
  }

  #ends(parts: readonly Part[]): number[] {
    const all: number[] = [];
    for (const { start, source, normalized, prefix, sections } of parts) {
      const ends = sections.flatMap((section) =>
        section.id !== undefined
          ? [section.end]
          : this.#endsIn(section).map((end) => section.start + Math.max(0, end - section.spaces)),
      );
      const inSource = ends.map((end) => Math.max(0, Math.min(end, normalized.length) - prefix));
      if (!this.#composes || normalized.length - prefix === source.length) {
        for (const end of inSource) all.push(start + end);
        continue;
      }
      const toSource = sourceOffsets(source, (part) => this.#normalize(part, 'text'));
      for (const end of inSource) all.push(start + (toSource[end] ?? source.length));
    }
    return all;
  }

  /** The offset in the text of the section after each of its tokens. */
  #endsIn({ text, pieces }: Split): number[] {
    const ends: number[] = [];
    let position = 0;
    let usedBytes = 0;
    const consume = (bytes: number): void => {
      while (bytes > 0 && position < text.length) {
        const code = text.codePointAt(position) as number;
        const left = utf8Size(code) - usedBytes;
        if (bytes < left) {
          usedBytes += bytes;
          return;
        }
        bytes -= left;
        usedBytes = 0;
        position += code > 0xffff ? 2 : 1;
      }
    };
    for (const token of pieces.flatMap((piece) => this.#encodePiece(piece))) {
      if (this.byteLevel) consume(token.length);
      else if (byteValue(token) !== undefined) consume(1);
      else position += token.length;
      ends.push(usedBytes === 0 ? position : position + ((text.codePointAt(position) as number) > 0xffff ? 2 : 1));
    }
    return ends;
  }

  #normalize(text: string, before: Before): string {
    // A lone surrogate has no UTF-8 form. It is replaced as a decoder would do it.
    const wellFormed = text.replace(/\p{Surrogate}/gu, '\ufffd');
    const normalized = this.#library.normalizer === null ? wellFormed : this.#library.normalizer.normalize(wellFormed);
    return before === 'text' || normalized === '' ? normalized : this.#prefix + normalized;
  }

  /** Splits normalised text. */
  #split(normalized: string, before: Before): { text: string; spaces: number; pieces: string[] } {
    let text = normalized;
    if (text === '') return { text, spaces: 0, pieces: [] };
    if (this.#metaspace !== undefined) {
      const { scheme } = this.#metaspace;
      text = text.replaceAll(' ', SPACE);
      const isFirst = scheme === 'always' ? before !== 'text' : scheme === 'first' && before === 'nothing';
      if (isFirst && !text.startsWith(SPACE)) text = SPACE + text;
    }
    return { text, spaces: text.length - normalized.length, pieces: this.#splitText(text) };
  }

  #splitText(text: string): string[] {
    if (this.#library.pre_tokenizer !== null) return this.#library.pre_tokenizer.pre_tokenize(text, {});
    return this.#splitsLines ? (text.match(/\n|[^\n]+/g) ?? []) : [text];
  }

  #encodePiece(piece: string): readonly string[] {
    const cached = this.#cache.get(piece);
    if (cached !== undefined) return cached;
    const tokens = this.#fused(this.#library.model._call([piece]));
    if (piece.length <= MAX_CACHED_PIECE) {
      if (this.#cache.size >= MAX_CACHED_PIECES) this.#cache.clear();
      this.#cache.set(piece, tokens);
    }
    return tokens;
  }

  /** Unknown characters side by side are one token, if the model says so. */
  #fused(tokens: string[]): string[] {
    const unknown = this.#fusedToken;
    return unknown === undefined ? tokens : tokens.filter((token, i) => token !== unknown || tokens[i - 1] !== unknown);
  }

  /** Tries typical code on both sides of a boundary. Returns false for patterns that look back. */
  #probeLineBoundaries(json: TokenizerJson, steps: Step[]): boolean {
    const forms = flatSteps(json.normalizer).map((step) => step.type);
    if (forms.some((form) => form !== 'NFC' && form !== 'NFKC')) return false;
    for (const step of steps) {
      if (step.type === 'ByteLevel' && step.add_prefix_space === true) return false;
      if (step.type !== 'ByteLevel' && step.type !== 'Split' && step.type !== 'Digits' && step.type !== 'Punctuation')
        return false;
      const pattern = (step.pattern as { Regex?: string } | undefined)?.Regex ?? '';
      if (/\(\?<[=!]|\^(?![^[]*\])|\\[AbBGzZ]|\$/.test(pattern)) return false;
    }
    for (const left of ['a', ' ', ';', ');', '\t', '1', 'é', '\n', '\n    ', "'", '🙂']) {
      for (const right of ['a', '1', "'re", '"', '}', '_x', '//', ')', '#', '<']) {
        const { pieces } = this.#split(this.#normalize(`${left}\n${right}`, 'text'), 'text');
        const wanted = bytesAsText(right);
        let tail = '';
        while (tail.length < wanted.length && pieces.length > 0) tail = pieces.pop() + tail;
        if (tail !== wanted) return false;
      }
    }
    return true;
  }
}

function addedSection(start: number, end: number, id: number): Split {
  return { start, end, id, text: '', spaces: 0, pieces: [] };
}
