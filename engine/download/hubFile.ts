/** A file as the hub lists it. Takes only names and hashes that can be relied on. Pure. */

export interface HubFile {
  /** With `/`, inside the repository. */
  path: string;
  size: number;
  /** Hexadecimal SHA-256 of the file, or the SHA-1 of its git blob. */
  hash: string;
  algorithm: 'sha256' | 'gitSha1';
}

const MAX_PATH_LENGTH = 512;
/** Devices of Windows, with any ending. */
const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;
/** What may be a part of a model. */
const NEEDED = /\.(?:gguf|safetensors)$|^[^/]*\.(?:json|jinja|txt)$|^licen[cs]e[^/]*$/i;

/** An entry of a listing; undefined for a folder, and for anything whose name or hash cannot be relied on. */
export function fileOf(entry: unknown): HubFile | undefined {
  const { type, path, size, oid, lfs } = fieldsOf(entry);
  if (type !== 'file' || typeof path !== 'string' || !isInside(path)) return undefined;
  const large = lfs && typeof lfs === 'object' ? (lfs as Record<string, unknown>) : undefined;
  const [hash, bytes] = large ? [large.oid, large.size] : [oid, size];
  const length = large ? 64 : 40;
  if (typeof hash !== 'string' || hash.length !== length || !/^[0-9a-f]+$/.test(hash)) return undefined;
  if (!Number.isSafeInteger(bytes) || (bytes as number) < 0) return undefined;
  return { path, size: bytes as number, hash, algorithm: large ? 'sha256' : 'gitSha1' };
}

/** Whether a model may lack something without this entry. Of an entry without a type or a name nobody knows. */
export function isNeeded(entry: unknown): boolean {
  const { type, path } = fieldsOf(entry);
  if (typeof type !== 'string' || typeof path !== 'string') return true;
  return type === 'file' && NEEDED.test(path);
}

const fieldsOf = (entry: unknown): Record<string, unknown> => (entry ?? {}) as Record<string, unknown>;

/** Whether the path stays in its repository on every platform. */
function isInside(path: string): boolean {
  if (path.length > MAX_PATH_LENGTH) return false;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are refused
  const isUnsafe = (part: string) => /^\.*$|[\\:*?"<>|\u0000-\u001f]|[. ]$/.test(part) || DEVICE.test(part);
  return !path.split('/').some(isUnsafe);
}
