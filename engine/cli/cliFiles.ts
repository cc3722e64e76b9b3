/** Reads files of the command line, or says why they cannot be read. Knows which files are secret. Writes nothing. */
import { readFile, realpath, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { RequestError, reasonOf } from '../protocol/errors.ts';

/** Size limit of request files and evaluation texts. */
export const MAX_INPUT_BYTES = 1e9;
/** Size limit of source files. Larger files are rarely source code, and would fill the memory. */
const MAX_FILE_BYTES = 10e6;

/** @param kind names the reason when files are counted, as in `3 files too large` */
export class FileError extends RequestError {
  readonly kind: string;

  constructor(path: string, reason: string, kind: string) {
    super('badRequest', `${path || '""'}: ${reason}`);
    this.kind = kind;
  }
}

/**
 * The text of a file without a byte order mark. Prints a note if some bytes are not valid text.
 * @param maxBytes size limit
 * @param allowPipe whether the file may be a pipe, such as /dev/stdin
 * @throws FileError
 */
export async function readTextFile(path: string, maxBytes = MAX_FILE_BYTES, allowPipe = false): Promise<string> {
  const { text, encoding, isWhole } = await readText(path, maxBytes, allowPipe);
  if (!isWhole)
    process.stderr.write(`note: ${path}: some bytes are not ${encoding.toUpperCase()} and are read as \ufffd\n`);
  return text;
}

/** Checks that the file can be read. @throws FileError */
export async function checkTextFile(path: string): Promise<void> {
  await readText(path, MAX_FILE_BYTES, false);
}

interface FileText {
  text: string;
  encoding: string;
  isWhole: boolean;
}

async function readText(path: string, maxBytes: number, allowPipe: boolean): Promise<FileText> {
  let bytes: Buffer;
  try {
    const info = await stat(path);
    if (info.isDirectory()) throw new FileError(path, 'is a folder; a file is needed', 'of another kind');
    if (!info.isFile() && !allowPipe) throw new FileError(path, 'is not a file', 'of another kind');
    if (info.size > maxBytes)
      throw new FileError(
        path,
        `${(info.size / 1e6).toFixed(0)} MB is too large; the limit is ${maxBytes / 1e6} MB`,
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

/** Decodes UTF-8, or UTF-16 with a byte order mark, which Windows shells write. */
function textOf(bytes: Buffer): FileText {
  const encoding =
    bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : 'utf-8';
  try {
    return { text: new TextDecoder(encoding, { fatal: true }).decode(bytes), encoding, isWhole: true };
  } catch {
    return { text: new TextDecoder(encoding).decode(bytes), encoding, isWhole: false };
  }
}

/** The reason of a file system error, as text for the user. */
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
 * Globs of secret files, the default of the setting `kvasir.completion.exclude`. The command line reads such a file if
 * it is named, leaves it out of a folder, and never writes its KV rows to disk.
 */
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

/** Matches the end of a path, or a folder in it. Ignores case, because some file systems do. */
const PATTERN = new RegExp(`/(?:${SECRETS.map(patternOf).join('|')})(?:/|$)`, 'i');

function patternOf(glob: string): string {
  const name = glob.replace(/^\*\*\//, '').replace(/\/\*\*$/, '');
  return name
    .split('*')
    .map((part) => part.replaceAll('.', '\\.'))
    .join('[^/]*');
}

/** Whether the name of a path is that of a secret file. Does not follow links. A pure function. */
export function isSecret(path: string): boolean {
  return PATTERN.test(resolve(path).replaceAll('\\', '/'));
}

/** Whether the file, or the file that its links lead to, is secret. True if that is unknown. */
export async function leadsToSecret(path: string): Promise<boolean> {
  if (isSecret(path)) return true;
  const real = await realpath(path).catch(() => null);
  return real === null || isSecret(real);
}
