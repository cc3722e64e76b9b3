/**
 * Reads single fields of config.json and generation_config.json: numbers within bounds, flags, token ids. Does not know
 * what the fields mean.
 */
import { invalid } from './modelFolder.ts';

export type Json = Record<string, unknown>;
export const FILE = 'config.json';

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Shows a value of the file in a message. Objects and nested lists are shown by their kind only. */
export function show(value: unknown): string {
  if (isObject(value)) return 'an object';
  if (Array.isArray(value))
    return value.some((v) => typeof v === 'object') ? 'a nested list' : JSON.stringify(value.slice(0, 8)).slice(0, 80);
  return (JSON.stringify(value) ?? String(value)).slice(0, 80);
}

/** An integer from 1 to `most`. `fallback` is used if the key is missing or null. */
export function count(config: Json, key: string, most: number, fallback?: number): number {
  const value = config[key] ?? fallback;
  const wanted = `it must be a positive integer, at most ${most}`;
  if (value === undefined) throw invalid(`${FILE}: ${key} is missing; ${wanted}.`);
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > most)
    throw invalid(`${FILE}: ${key} is ${show(value)}; ${wanted}.`);
  return value;
}

/** A number from `least` to `most`. `where` stands before the key in messages. */
export function number(
  source: Json,
  key: string,
  { least, most, where = '', fallback }: { least: number; most: number; where?: string; fallback?: number },
): number {
  const value = source[key] ?? fallback;
  const wanted = `it must be a number from ${least} to ${most}`;
  if (value === undefined) throw invalid(`${FILE}: ${where}${key} is missing; ${wanted}.`);
  if (typeof value !== 'number' || !(value >= least && value <= most))
    throw invalid(`${FILE}: ${where}${key} is ${show(value)}; ${wanted}.`);
  return value;
}

export function flag(config: Json, key: string, fallback: boolean): boolean {
  const value = config[key] ?? fallback;
  if (typeof value !== 'boolean') throw invalid(`${FILE}: ${key} is ${show(value)}; it must be true or false.`);
  return value;
}

/**
 * Reads a token id or a list of them. Returns the ids that exist in the vocabulary. Null if the key is missing.
 * @throws RequestError for other values, and for end tokens of which none exists: no answer would end
 */
export function tokenIds(source: Json, file: string, key: string, vocabSize: number): number[] | null {
  const value = source[key];
  if (value === undefined || value === null) return null;
  const ids: unknown[] = Array.isArray(value) ? value : [value];
  for (const id of ids)
    if (typeof id !== 'number' || !Number.isInteger(id) || id < 0)
      throw invalid(`${file}: ${key} is ${show(value)}; it must be a token id or a list of token ids.`);
  const known = (ids as number[]).filter((id) => id < vocabSize);
  if (key === 'eos_token_id' && ids.length > 0 && known.length === 0)
    throw invalid(
      `${file}: ${key} is ${show(value)}, but vocab_size is only ${vocabSize}; correct it, or download the file again.`,
    );
  return known;
}
