/**
 * Files that hold secrets, as the editor's setting `kvasir.completion.exclude` has them by default. On the command line whoever
 * names such a file means it; of a folder it is left out, and nothing that is computed of it is written to the disk.
 */
import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';

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
