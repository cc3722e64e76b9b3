// One VSIX for each platform, with that platform's native library alone: `npm run package` for this machine,
// `-- --target win32-x64` for another one, `-- --all` for all; `--out FILE` (or a folder that exists) says where to.
// .vscodeignore lists what all have in common; the native library's files are added here, and a README without pictures.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { createVSIX } from '@vscode/vsce';
import { readmeForPackage } from './packageReadme.mjs';

const BINARIES = 'node_modules/onnxruntime-node/bin/napi-v6';

/**
 * What the engine loads of onnxruntime: the binding and the library that it links. The rest of that package is for graphics
 * processors (DirectML, the shader compiler) and loaded on demand only, or the same library under a second name.
 */
const LIBRARY = { linux: 'libonnxruntime.so.1', darwin: 'libonnxruntime.1.dylib', win32: 'onnxruntime.dll' };

export const TARGETS = ['linux-x64', 'linux-arm64', 'win32-x64', 'win32-arm64', 'darwin-arm64'];

/** The native files of a target, relative to the project. */
export function nativeFiles(target) {
  const [platform, arch] = target.split('-');
  return ['onnxruntime_binding.node', LIBRARY[platform]].map((file) => `${BINARIES}/${platform}/${arch}/${file}`);
}

/** Packages what `dist` holds. @returns the path of the VSIX. */
export async function packageTarget(target, out) {
  for (const file of nativeFiles(target)) statSync(file);
  const folder = '.cache/package';
  mkdirSync(folder, { recursive: true });
  const ignoreFile = path.resolve(folder, `${target}.vscodeignore`);
  writeFileSync(ignoreFile, [readFileSync('.vscodeignore', 'utf8').trimEnd(), ...nativeFiles(target).map((file) => `!${file}`), ''].join('\n'));
  const readmePath = path.posix.join(folder, 'README.md');
  writeFileSync(readmePath, readmeForPackage(readFileSync('README.md', 'utf8')));
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  const name = `kvasir-${target}-${version}.vsix`;
  const isFolder = out !== undefined && statSync(out, { throwIfNoEntry: false })?.isDirectory();
  const packagePath = out === undefined ? name : isFolder ? path.join(out, name) : out;
  await createVSIX({ cwd: process.cwd(), target, ignoreFile, readmePath, packagePath, rewriteRelativeLinks: false, allowMissingRepository: true });
  return packagePath;
}

async function main() {
  const here = `${process.platform}-${process.arch}`;
  const { values } = parseArgs({ options: { all: { type: 'boolean' }, target: { type: 'string', multiple: true }, out: { type: 'string', short: 'o' } } });
  const targets = values.all ? TARGETS : (values.target ?? [here]);
  const unknown = targets.find((target) => !TARGETS.includes(target));
  if (unknown) throw new Error(`there is no package for ${unknown}; there is one for ${TARGETS.join(', ')}`);
  if (targets.length > 1 && values.out && !statSync(values.out, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`--out ${values.out}: several packages need a folder that exists`);
  if (spawnSync(process.execPath, ['esbuild.mjs', '--minify', '--quiet'], { stdio: 'inherit' }).status !== 0) throw new Error('the bundles could not be built');
  for (const target of targets) {
    const file = await packageTarget(target, values.out);
    console.log(`${file}: ${(statSync(file).size / 1e6).toFixed(1)} MB`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main().catch((error) => {
    console.error(`package: ${error.message}`);
    process.exitCode = 1;
  });
}
