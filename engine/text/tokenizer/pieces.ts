/**
 * Splits text into token strings: the pipeline of a tokenizer.json without added tokens, so that text of a user stays
 * text. Adds to @huggingface/tokenizers numeric characters outside ASCII, offsets, and safe places to cut a text.
 */
import { Tokenizer as HfTokenizer } from '@huggingface/tokenizers';

/** The parts of tokenizer.json that are used. */
export interface TokenizerJson {
  model: { type?: string; vocab: Record<string, number>; ignore_merges?: boolean };
  added_tokens: AddedToken[];
  normalizer: Step | null;
  pre_tokenizer: Step | null;
  decoder: Step | null;
  post_processor: Step | null;
}

export interface AddedToken {
  id: number;
  content: string;
  special: boolean;
  lstrip?: boolean;
  rstrip?: boolean;
}

/** A stage of a pipeline. Stages of the type Sequence contain other stages. */
export interface Step {
  type?: string;
  [key: string]: unknown;
}

interface Library {
  normalizer: { normalize(text: string): string } | null;
  pre_tokenizer: { pre_tokenize(text: string, options: { section_index: number }): string[] } | null;
  model: { _call(pieces: string[]): string[]; tokens_to_ids: Map<string, number> };
}

/** Longer pieces are rare, so they are not cached. */
const MAX_CACHED_PIECE = 64;
const MAX_CACHED_PIECES = 50_000;

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
  readonly #composes: boolean;
  readonly #splitsLines: boolean;
  readonly #cache = new Map<string, string[]>();

  constructor(json: TokenizerJson, config: object) {
    const plain = structuredClone(json);
    const names = plain.added_tokens.map((token) => token.content);
    plain.added_tokens = [];
    // With ignore_merges, whole pieces are looked up in the vocabulary, and would match control tokens.
    if (plain.model.ignore_merges) for (const name of names) delete plain.model.vocab[name];
    this.#prefix = takePrefix(plain);
    plain.pre_tokenizer = mapSteps(plain.pre_tokenizer, numericDigits);
    this.#library = new HfTokenizer(plain, config) as unknown as Library;

    const steps = flatSteps(plain.pre_tokenizer);
    this.byteLevel =
      steps.some((step) => step.type === 'ByteLevel') ||
      flatSteps(json.decoder).some((step) => step.type === 'ByteLevel');
    this.#composes = flatSteps(plain.normalizer).some((step) => step.type !== 'Replace' && step.type !== undefined);
    // Without a pre-tokenizer the whole text is one BPE word. Merges cross no line break if no token contains one.
    this.#splitsLines =
      plain.pre_tokenizer === null &&
      !this.byteLevel &&
      Object.keys(plain.model.vocab).every((token) => token === '\n' || !token.includes('\n'));
    this.hasLineBoundaries =
      this.#splitsLines || (plain.pre_tokenizer !== null && this.#probeLineBoundaries(plain, steps));
  }

  /** Token strings of a text. `continues`: without the text that the normaliser puts before every text. */
  encode(text: string, continues = false): string[] {
    return this.#encode(this.#normalize(text, continues), continues);
  }

  /**
   * Token strings of a text that is followed by `next`, a visible ASCII character. Undefined if it cannot be cut there.
   */
  encodeBefore(text: string, next: string, continues: boolean): string[] | undefined {
    if (this.#splitsLines) return this.encode(text, continues);
    const pieces = this.#split(this.#normalize(text + next, continues), continues);
    if (pieces.pop() !== next) return undefined;
    return pieces.flatMap((piece) => this.#encodePiece(piece));
  }

  /**
   * The UTF-16 offset in `text` after each token. A token that ends inside a character gets the end of the character.
   */
  ends(text: string, tokens: readonly string[], continues = false): number[] {
    const normalized = this.#normalize(text, continues);
    const before = continues || text === '' ? 0 : this.#prefix.length;
    const ends: number[] = [];
    let position = 0;
    let usedBytes = 0;
    const consume = (bytes: number): void => {
      while (bytes > 0 && position < normalized.length) {
        const code = normalized.codePointAt(position) as number;
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
    for (const token of tokens) {
      if (this.byteLevel) consume(token.length);
      else if (byteValue(token) !== undefined) consume(1);
      else position += token.length;
      const end =
        usedBytes === 0 ? position : position + ((normalized.codePointAt(position) as number) > 0xffff ? 2 : 1);
      ends.push(Math.max(0, Math.min(end, normalized.length) - before));
    }
    if (!this.#composes || normalized.length - before === text.length) return ends;
    const toSource = sourceOffsets(text, (part) => this.#normalize(part, true));
    return ends.map((end) => toSource[end] ?? text.length);
  }

  #normalize(text: string, continues: boolean): string {
    // A lone surrogate has no UTF-8 form. It is replaced as a decoder would do it.
    const wellFormed = text.replace(/\p{Surrogate}/gu, '\ufffd');
    const normalized = this.#library.normalizer === null ? wellFormed : this.#library.normalizer.normalize(wellFormed);
    return continues || normalized === '' ? normalized : this.#prefix + normalized;
  }

  #split(normalized: string, continues: boolean): string[] {
    if (normalized === '') return [];
    if (this.#library.pre_tokenizer !== null)
      return this.#library.pre_tokenizer.pre_tokenize(normalized, { section_index: continues ? 1 : 0 });
    return this.#splitsLines ? (normalized.match(/\n|[^\n]+/g) ?? []) : [normalized];
  }

  #encode(normalized: string, continues: boolean): string[] {
    const tokens: string[] = [];
    for (const piece of this.#split(normalized, continues))
      for (const token of this.#encodePiece(piece)) tokens.push(token);
    return tokens;
  }

  #encodePiece(piece: string): readonly string[] {
    const cached = this.#cache.get(piece);
    if (cached !== undefined) return cached;
    const tokens = this.#library.model._call([piece]);
    if (piece.length <= MAX_CACHED_PIECE) {
      if (this.#cache.size >= MAX_CACHED_PIECES) this.#cache.clear();
      this.#cache.set(piece, tokens);
    }
    return tokens;
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
        const pieces = this.#split(this.#normalize(`${left}\n${right}`, true), true);
        const wanted = bytesAsText(right);
        let tail = '';
        while (tail.length < wanted.length && pieces.length > 0) tail = pieces.pop() + tail;
        if (tail !== wanted) return false;
      }
    }
    return true;
  }
}

/** The byte of a token such as "<0x0A>". */
export function byteValue(token: string): number | undefined {
  return token.length === 6 && token.startsWith('<0x') && token.endsWith('>')
    ? Number.parseInt(token.slice(3, 5), 16)
    : undefined;
}

/** GPT-2's alphabet: the character for each byte. */
export const BYTE_CHARACTERS: readonly string[] = (() => {
  const printable = (byte: number): boolean =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
})();

function bytesAsText(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => BYTE_CHARACTERS[byte]).join('');
}

function utf8Size(code: number): number {
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}

/** For each offset of the normalised text, the offset in the source. Exact at every ASCII character. */
function sourceOffsets(text: string, normalize: (part: string) => string): number[] {
  const map = [0];
  let source = 0;
  // No composition crosses an ASCII character, so each one is normalised with the characters after it.
  for (const part of text.match(/[\0-\x7f]?[^\0-\x7f]*/g) ?? []) {
    const composed = normalize(part);
    const same = composed.length === part.length;
    for (let i = 1; i <= composed.length; i++)
      map.push(
        same || i === composed.length ? source + Math.min(i, part.length) : source + Math.min(i - 1, part.length),
      );
    source += part.length;
    map[map.length - 1] = source;
  }
  return map;
}

/** Digits of the library matches 0-9 only. The reference matches every character of the category N. */
function numericDigits(step: Step): Step {
  if (step.type !== 'Digits') return step;
  return {
    type: 'Split',
    pattern: { Regex: step.individual_digits === true ? '\\p{N}' : '\\p{N}+' },
    behavior: 'Isolated',
    invert: false,
  };
}

/** Removes the step Prepend of the normaliser, if it is the first one, and returns the text that it prepends. */
function takePrefix(json: TokenizerJson): string {
  const normalizer = json.normalizer;
  if (normalizer === null) return '';
  const steps = normalizer.type === 'Sequence' ? (normalizer.normalizers as Step[]) : [normalizer];
  const first = steps[0];
  if (first?.type !== 'Prepend') return '';
  json.normalizer = { type: 'Sequence', normalizers: steps.slice(1) };
  return first.prepend as string;
}

function mapSteps(step: Step | null, change: (step: Step) => Step): Step | null {
  if (step?.type !== 'Sequence') return step === null ? null : change(step);
  return { ...step, pretokenizers: (step.pretokenizers as Step[]).map((inner) => mapSteps(inner, change)) };
}

/** The steps of a pipeline, without its sequences. */
export function flatSteps(step: Step | null): Step[] {
  if (step === null || step === undefined) return [];
  if (step.type !== 'Sequence') return [step];
  const inner = (step.normalizers ?? step.pretokenizers ?? step.decoders ?? step.processors ?? []) as Step[];
  return inner.flatMap((child) => flatSteps(child));
}
