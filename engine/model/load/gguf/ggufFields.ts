/** Reads single metadata values of a GGUF file: numbers, texts and lists of the expected type. Does not know the keys. */
import type { RequestError } from '../../../protocol/errors.ts';
import { invalid } from '../modelFolder.ts';
import type { Metadata, MetaValue } from './ggufHeader.ts';

const MAX_COUNT = 2 ** 31 - 1;

export class GgufFields {
  /** Name of the file, for messages. */
  readonly file: string;
  readonly #metadata: Metadata;

  constructor(file: string, metadata: Metadata) {
    this.file = file;
    this.#metadata = metadata;
  }

  /** `wanted` ends the sentence "it must be ...". */
  wrong(key: string, wanted: string): RequestError {
    const value = this.#metadata.get(key);
    return invalid(
      `${this.file}: ${key} is ${value === undefined ? 'missing' : show(value)}; it must be ${wanted}: choose another file.`,
    );
  }

  has(key: string): boolean {
    return this.#metadata.has(key);
  }

  /** A whole number from `least`. `fallback`: if the key is missing. */
  count(key: string, { least = 1, fallback }: { least?: number; fallback?: number } = {}): number {
    const value = this.#metadata.get(key) ?? fallback;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > MAX_COUNT)
      throw this.wrong(key, `a whole number from ${least} to ${MAX_COUNT}`);
    return value;
  }

  /** A finite number. Files have it in float32: the shortest decimal number that is rounded to it is meant. */
  number(key: string, fallback?: number): number {
    const value = this.#metadata.get(key) ?? fallback;
    if (typeof value !== 'number' || !Number.isFinite(value)) throw this.wrong(key, 'a number');
    for (let digits = 1; digits < 9; digits++) {
      const short = Number(value.toPrecision(digits));
      if (Math.fround(short) === value) return short;
    }
    return value;
  }

  flag(key: string, fallback: boolean): boolean {
    const value = this.#metadata.get(key) ?? fallback;
    if (typeof value !== 'boolean') throw this.wrong(key, 'true or false');
    return value;
  }

  /** Undefined if the key is missing. */
  text(key: string): string | undefined {
    const value = this.#metadata.get(key);
    if (value !== undefined && typeof value !== 'string') throw this.wrong(key, 'a text');
    return value;
  }

  texts(key: string): readonly string[] {
    const value = this.#list(key, 'string', 'texts');
    if (value === undefined) throw this.wrong(key, 'a list of texts');
    return value as readonly string[];
  }

  /** Undefined if the key is missing. */
  numbers(key: string): readonly number[] | undefined {
    return this.#list(key, 'number', 'numbers') as readonly number[] | undefined;
  }

  /** Undefined if the key is missing, or holds no list. */
  flags(key: string): readonly boolean[] | undefined {
    return Array.isArray(this.#metadata.get(key))
      ? (this.#list(key, 'boolean', 'truth values') as readonly boolean[])
      : undefined;
  }

  #list(
    key: string,
    type: 'string' | 'number' | 'boolean',
    what: string,
  ): readonly (string | number | boolean)[] | undefined {
    const value = this.#metadata.get(key);
    if (value === undefined) return undefined;
    // All entries have one type.
    if (!Array.isArray(value) || (value.length > 0 && typeof value[0] !== type))
      throw this.wrong(key, `a list of ${what}`);
    return value;
  }
}

/** A value in a message. Lists and long texts are shown in part. */
function show(value: MetaValue): string {
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'string' ? JSON.stringify(value).slice(0, 80) : String(value);
}
