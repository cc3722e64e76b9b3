/**
 * Sets the peers up: installs their packages and writes the random model in their formats, all under the cache folder.
 * Keeps existing files. Sets each peer up separately, so that a failure of one does not affect the others.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { ShapeName } from '../shapes.ts';
import { shapeFolder } from '../writeShape.ts';
import { type BlockFormat, writeGguf } from './gguf.ts';
import { modelFile, type PeerName, type Places, pythonProgram, SEED } from './participants.ts';

/** @returns the reason of each peer that could not be set up, by its name. Empty if all are set up. */
export async function setUp(peers: readonly PeerName[], shape: ShapeName, at: Places): Promise<Map<PeerName, string>> {
  const failures = new Map<PeerName, string>();
  const modelDir = await shapeFolder(shape, at.shapes, SEED);
  mkdirSync(path.join(at.models, path.basename(modelDir)), { recursive: true });
  const steps: Record<PeerName, () => Promise<void> | void> = {
    llama: async () => {
      installNode(at.node);
      await gguf(modelDir, modelFile(at, shape, 'q8_0.gguf'), 'q8_0');
      await gguf(modelDir, modelFile(at, shape, 'q4_0-head.gguf'), 'q4_0');
    },
    openvino: () => {
      installPython(at);
      exported('openvino', modelDir, modelFile(at, shape, 'openvino'), at);
    },
    transformers: () => {
      installNode(at.node);
      installPython(at);
      exported('transformers', modelDir, modelFile(at, shape, 'transformers'), at);
    },
  };
  for (const peer of peers) {
    try {
      await steps[peer]();
      console.log(`${peer}: ready`);
    } catch (error) {
      failures.set(peer, error instanceof Error ? error.message : String(error));
      console.error(`${peer}: ${failures.get(peer)}`);
    }
  }
  return failures;
}

async function gguf(modelDir: string, target: string, format: BlockFormat): Promise<void> {
  if (existsSync(target)) return;
  console.log(`writing ${target}`);
  await writeGguf(modelDir, target, format);
}

/** Runs a program and shows its output. @throws Error that says what to do about a failure. */
function run(what: string, command: string, args: string[], options: { cwd?: string; advice: string }): void {
  console.log(`${what}: ${[command, ...args].join(' ')}`);
  // On Windows npm is a .cmd file, which needs a shell.
  const { status, error, signal } = spawnSync(command, args, {
    stdio: 'inherit',
    cwd: options.cwd,
    shell: process.platform === 'win32' && command === 'npm',
  });
  if (status !== 0)
    throw new Error(
      `${what} failed (${error?.message ?? (signal ? `ended by ${signal}` : `exit code ${status}`)}); ${options.advice}`,
    );
}

/** Whether the last step of an installation has left the package list that it was made from. */
function isInstalled(folder: string, list: string): boolean {
  const mark = path.join(folder, `installed-${path.basename(list)}`);
  return existsSync(mark) && readFileSync(mark, 'utf8') === readFileSync(list, 'utf8');
}

function markInstalled(folder: string, list: string): void {
  copyFileSync(list, path.join(folder, `installed-${path.basename(list)}`));
}

/** @throws Error that says what to do about a failure. */
export function installNode(folder: string): void {
  const list = path.join(import.meta.dirname, 'package-lock.json');
  if (isInstalled(folder, list)) return;
  mkdirSync(folder, { recursive: true });
  for (const file of ['package.json', 'package-lock.json'])
    copyFileSync(path.join(import.meta.dirname, file), path.join(folder, file));
  const advice =
    'the npm registry must be reachable, and the platform must be one that node-llama-cpp and sharp have binaries for';
  // Leaves optional packages out, because they include gigabytes for GPUs. Those for this platform are named below.
  const flags = ['--ignore-scripts', '--omit=optional', '--no-audit', '--no-fund'];
  // `npm ci` refuses a lock file that lacks optional packages, and a registry need not have those of every platform.
  run('installing the npm packages', 'npm', ['install', ...flags], { cwd: folder, advice });
  run(
    'installing their binaries',
    'npm',
    ['install', '--no-save', '--no-package-lock', ...flags, ...platformPackages(folder)],
    { cwd: folder, advice },
  );
  markInstalled(folder, list);
}

/** Packages with the binaries for this machine's processor, in the versions that their parent packages ask for. */
function platformPackages(folder: string): string[] {
  const system = process.platform === 'win32' ? 'win' : process.platform === 'darwin' ? 'mac' : process.platform;
  const wanted: Record<string, string[]> = {
    'node-llama-cpp': [`@node-llama-cpp/${system}-${process.arch}`, `@node-llama-cpp/${system}-${process.arch}-metal`],
    sharp: [`@img/sharp-${process.platform}-${process.arch}`, `@img/sharp-libvips-${process.platform}-${process.arch}`],
  };
  return Object.entries(wanted).flatMap(([owner, names]) => {
    const { optionalDependencies } = JSON.parse(
      readFileSync(path.join(folder, 'node_modules', owner, 'package.json'), 'utf8'),
    ) as { optionalDependencies: Record<string, string> };
    return names.filter((name) => optionalDependencies[name]).map((name) => `${name}@${optionalDependencies[name]}`);
  });
}

function installPython(at: Places): void {
  const list = path.join(import.meta.dirname, 'requirements.txt');
  if (isInstalled(at.python, list)) return;
  const advice = 'Python 3.10 to 3.13 with venv and a reachable PyPI are needed';
  run('making a virtual environment', process.platform === 'win32' ? 'python' : 'python3', ['-m', 'venv', at.python], {
    advice,
  });
  run('installing the Python packages', pythonProgram(at), ['-m', 'pip', 'install', '--quiet', '--requirement', list], {
    advice,
  });
  markInstalled(at.python, list);
}

/** Exports the model. The folder is written completely or not at all. */
function exported(format: 'openvino' | 'transformers', modelDir: string, target: string, at: Places): void {
  if (existsSync(target)) return;
  const temporary = `${target}.writing-${process.pid}`;
  try {
    run(
      `exporting for ${format}`,
      pythonProgram(at),
      [path.join(import.meta.dirname, 'exportModels.py'), format, modelDir, temporary],
      { advice: 'the export needs about 10 bytes of memory per parameter' },
    );
    renameSync(temporary, target);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}
