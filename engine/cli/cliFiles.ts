/** Files that are named on the command line: read whole, or the one reason why not. */
import { readFile, realpath, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { RequestError, reasonOf } from '../protocol/errors.ts';

/** Of what is read whole for its lines, or to be scored. */
export const MAX_INPUT_BYTES = 1e9;
/** Files larger than this are not source code that anyone asks about; reading them would only fill memory. */
const MAX_FILE_BYTES = 10e6;

/** @param kind as it is counted where many files are read. */
export class FileError extends RequestError {
  readonly kind: string;

  constructor(path: string, reason: string, kind: string) {
    super('badRequest', `${path || '""'}: ${reason}`);
    this.kind = kind;
  }
}

/** Its text, without a byte order mark; that there are bytes in it which are none is said. @param streams whether it may be a pipe, such as /dev/stdin. @throws FileError */
export async function readTextFile(path: string, largest = MAX_FILE_BYTES, streams = false): Promise<string> {
  const { text, encoding, isWhole } = await readText(path, largest, streams);
  if (!isWhole)
    process.stderr.write(`note: ${path}: not all of it is ${encoding.toUpperCase()}; what is not is read as \ufffd\n`);
  return text;
}

/** Whether it can be read, before it is. @throws FileError */
export async function checkTextFile(path: string): Promise<void> {
  await readText(path, MAX_FILE_BYTES, false);
}

interface FileText {
  text: string;
  encoding: string;
  isWhole: boolean;
}

async function readText(path: string, largest: number, streams: boolean): Promise<FileText> {
  let bytes: Buffer;
  try {
    const info = await stat(path);
    if (info.isDirectory()) throw new FileError(path, 'is a folder; a file is needed', 'of another kind');
    if (!info.isFile() && !streams) throw new FileError(path, 'is not a file', 'of another kind');
    if (info.size > largest)
      throw new FileError(
        path,
        `${(info.size / 1e6).toFixed(0)} MB is too large, the limit is ${largest / 1e6} MB`,
        'too large',
      );
    bytes = await readFile(path);
  } catch (error) {
    throw error instanceof FileError ? error : new FileError(path, whyNot(error), 'that cannot be read');
  }
  const read = textOf(bytes);
  if (read.text.includes('\0')) throw new FileError(path, 'is a binary file', 'binary');
  return read;
}

/** UTF-8, or UTF-16 where a byte order mark says so: shells of Windows write that. */
function textOf(bytes: Buffer): FileText {
  const encoding =
    bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : 'utf-8';
  try {
    return { text: new TextDecoder(encoding, { fatal: true }).decode(bytes), encoding, isWhole: true };
  } catch {
    return { text: new TextDecoder(encoding).decode(bytes), encoding, isWhole: false };
  }
}

/** What the system says of a file, in words. */
export function whyNot(error: unknown): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
      return 'no such file';
    case 'ENOTDIR':
      return 'no such file: a part of its path is a file, not a folder';
    case 'EACCES':
    case 'EPERM':
      return 'you have no permission for it';
    case 'EISDIR':
      return 'is a folder; a file is needed';
    case 'EROFS':
      return 'the disk is read-only';
    case 'ENOSPC':
      return 'the disk is full';
    default:
      return reasonOf(error);
  }
}

/**
 * Files that hold secrets, as the editor's setting `kvasir.completion.exclude` has them by default. On the command line whoever
 * names such a file means it; of a folder it is left out, and nothing that is computed of it is written to the disk.
 */

/** Globs: `**` any folders, `*` anything of a name. */
export const SECRETS: readonly string[] = [
  '**/.env*',
  '**/*.pem',
  '**/*.key',
  '**/*.p12',
  '**/*.pfx',
  '**/*.keystore',
  '**/id_rsa*',
  '**/id_ed25519*',
  '**/id_ecdsa*',
  '**/.npmrc',
  '**/.netrc',
  '**/.ssh/**',
  '**/.aws/credentials',
];

/** Of a path's end, or of a folder in it: one that fits stands for all that is in it. Case does not tell on every system. */
const PATTERN = new RegExp(`/(?:${SECRETS.map(patternOf).join('|')})(?:/|$)`, 'i');

function patternOf(glob: string): string {
  const name = glob.replace(/^\*\*\//, '').replace(/\/\*\*$/, '');
  return name
    .split('*')
    .map((part) => part.replaceAll('.', '\\.'))
    .join('[^/]*');
}

/** PURE: by this name alone. */
export function isSecret(path: string): boolean {
  return PATTERN.test(resolve(path).replaceAll('\\', '/'));
}

/** By its name, or by that of the file that links lead to; also one of which that cannot be told. */
export async function leadsToSecret(path: string): Promise<boolean> {
  if (isSecret(path)) return true;
  const real = await realpath(path).catch(() => null);
  return real === null || isSecret(real);
}
