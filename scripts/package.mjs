// Makes one VSIX per platform with only that platform's native library. `npm run package` packages for this machine,
// `-- --target win32-x64` for another one, `-- --all` for all. `--out FILE` (or an existing folder) sets the output
// path. .vscodeignore lists the files of all packages; this script adds the native files and a README without pictures.
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { createVSIX } from '@vscode/vsce';
import { readmeForPackage } from './packageReadme.mjs';

const BINARIES = 'node_modules/onnxruntime-node/bin/napi-v6';

/**
 * Files of onnxruntime that the engine loads: the binding and the library that it links. The other files of that
 * package are for graphics processors (DirectML, the shader compiler) and loaded only on demand, or are the same
 * library under a second name.
 */
const LIBRARY = { linux: 'libonnxruntime.so.1', darwin: 'libonnxruntime.1.dylib', win32: 'onnxruntime.dll' };

export const TARGETS = ['linux-x64', 'linux-arm64', 'win32-x64', 'win32-arm64', 'darwin-arm64'];

/** A target's native files, relative to the project. */
export function nativeFiles(target) {
  const [platform, arch] = target.split('-');
  return [
    ...['onnxruntime_binding.node', LIBRARY[platform]].map((file) => `${BINARIES}/${platform}/${arch}/${file}`),
    `dist/native/${target}.node`,
  ];
}

/** The files that .vscodeignore names. It is an allow-list, with `*` only in the last part of a path. */
function allowedFiles() {
  const patterns = readFileSync('.vscodeignore', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1).trim());
  return patterns.flatMap((pattern) => {
    const [folder, name] = [path.posix.dirname(pattern), path.posix.basename(pattern)];
    const regex = new RegExp(
      `^${name
        .split('*')
        .map((part) => part.replace(/[.+]/g, '\\$&'))
        .join('[^/]*')}$`,
    );
    const found = readdirSync(folder).filter((file) => regex.test(file));
    if (found.length === 0) throw new Error(`.vscodeignore names ${pattern}, which is not there`);
    return found.map((file) => path.posix.join(folder, file));
  });
}

/** Files of the runtime dependencies that npm needs to report that no dependency is missing. */
function manifests() {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  return Object.entries(packages)
    .filter(([folder, { dev, optional }]) => folder && !dev && !optional)
    .map(([folder]) => `${folder}/package.json`);
}

/**
 * Packages the content of `dist` from a folder that contains nothing else. vsce examines every file below its folder,
 * and the project's caches may have a hundred thousand files. @returns the path of the VSIX.
 */
export async function packageTarget(target, out) {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  const name = `kvasir-${target}-${version}.vsix`;
  const isFolder = out !== undefined && statSync(out, { throwIfNoEntry: false })?.isDirectory();
  const packagePath = path.resolve(out === undefined ? name : isFolder ? path.join(out, name) : out);
  mkdirSync('.cache', { recursive: true });
  const stage = mkdtempSync(path.resolve('.cache/package-'));
  try {
    for (const file of [...allowedFiles(), ...nativeFiles(target), ...manifests()]) {
      mkdirSync(path.join(stage, path.dirname(file)), { recursive: true });
      copyFileSync(file, path.join(stage, file));
    }
    writeFileSync(path.join(stage, 'README.md'), readmeForPackage(readFileSync('README.md', 'utf8')));
    writeFileSync(
      path.join(stage, '.vscodeignore'),
      [
        readFileSync('.vscodeignore', 'utf8').trimEnd(),
        '!README.md',
        ...nativeFiles(target).map((file) => `!${file}`),
        '',
      ].join('\n'),
    );
    await createVSIX({ cwd: stage, target, packagePath, rewriteRelativeLinks: false, allowMissingRepository: true });
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
  return path.relative('', packagePath);
}

async function main() {
  const here = `${process.platform}-${process.arch}`;
  const { values } = parseArgs({
    options: {
      all: { type: 'boolean' },
      target: { type: 'string', multiple: true },
      out: { type: 'string', short: 'o' },
    },
  });
  const targets = values.all ? TARGETS : (values.target ?? [here]);
  const unknown = targets.find((target) => !TARGETS.includes(target));
  if (unknown) throw new Error(`there is no package for ${unknown}; there is one for ${TARGETS.join(', ')}`);
  if (targets.length > 1 && values.out && !statSync(values.out, { throwIfNoEntry: false })?.isDirectory())
    throw new Error(`--out ${values.out}: several packages need a folder that exists`);
  if (spawnSync(process.execPath, ['esbuild.mjs', '--minify', '--quiet'], { stdio: 'inherit' }).status !== 0)
    throw new Error('the bundles could not be built');
  // Compression takes nearly all of the time and runs in its own threads.
  for (const file of await Promise.all(targets.map((target) => packageTarget(target, values.out))))
    console.log(`${file}: ${(statSync(file).size / 1e6).toFixed(1)} MB`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await main().catch((error) => {
    console.error(`package: ${error.message}`);
    process.exitCode = 1;
  });
}
