/** What the name of a GGUF file says: the model, and the parts of it. Reads no files. */
import { oneLine } from './oneLine.ts';

const PART = /^(.+)-(\d{5})-of-(\d{5})(\.gguf)$/is;
const MAX_PARTS = 512;

export interface GgufName {
  /** In one line, for display. */
  readonly model: string;
  /** From 1. */
  readonly part: number;
  /** The name of the first part. */
  readonly first: string;
  /** The names of all parts, in order. */
  readonly files: readonly string[];
}

/** Null for a name without the ending .gguf. A file that claims to be one of too many parts is taken for a whole one. */
export function ggufName(file: string): GgufName | null {
  if (!/\.gguf$/i.test(file)) return null;
  const [, stem = '', part, count, ending] = PART.exec(file) ?? [];
  const numParts = Number(count ?? 1);
  if (numParts <= 1 || numParts > MAX_PARTS)
    return { model: oneLine(file.slice(0, -5)), part: 1, first: file, files: [file] };
  const name = (i: number): string => `${stem}-${String(i + 1).padStart(5, '0')}-of-${count}${ending}`;
  return {
    model: oneLine(stem),
    part: Number(part),
    first: name(0),
    // Made when asked for: a folder may have thousands of such names.
    get files() {
      return Array.from({ length: numParts }, (_, i) => name(i));
    },
  };
}

/** Name of the manifest beside a GGUF file, as kvasir.json is in a folder. Parts use the name of the first part. */
export function ggufManifest(file: string): string {
  return `${ggufName(file)?.first ?? file}.kvasir.json`;
}
