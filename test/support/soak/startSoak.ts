/** Starts a soak in its own process. Does not judge its result. */
import { spawn, spawnSync } from 'node:child_process';
import path from 'node:path';
import { MAX_YOUNG_MB } from '../../../src/client/transport.ts';
import type { SoakOptions, SoakResult } from './soakRun.ts';

/** Resident memory may grow by this much per 1,000 requests over the last half of a run. */
export const MAX_GROWTH_BYTES = 1e6;

/** Environment for an addon with sanitizers: their library must be loaded first. Leaks of Node itself are not told. */
function sanitizers(): NodeJS.ProcessEnv {
  const library = ['clang', 'gcc']
    .map((compiler) => {
      const name =
        compiler === 'clang' ? `libclang_rt.asan-${process.arch === 'x64' ? 'x86_64' : 'aarch64'}.so` : 'libasan.so';
      return spawnSync(compiler, [`-print-file-name=${name}`], { encoding: 'utf8' }).stdout?.trim();
    })
    .find((found) => found !== undefined && path.isAbsolute(found));
  if (library === undefined) throw new Error('There is no library of the sanitizers.');
  // Freed memory is kept apart for a while, at most so much.
  return { ...process.env, LD_PRELOAD: library, ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=16' };
}

/**
 * Runs a soak with the same limit for young memory as the engine.
 * @throws Error with the output of the process if it fails.
 */
export function soakProcess(options: SoakOptions): Promise<SoakResult> {
  const script = path.join(import.meta.dirname, 'soakProcess.ts');
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [
        '--expose-gc',
        `--max-semi-space-size=${Math.floor(MAX_YOUNG_MB / 3)}`,
        '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON',
        script,
        JSON.stringify(options),
      ],
      { stdio: ['ignore', 'pipe', 'pipe'], env: options.model?.library ? sanitizers() : process.env },
    );
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
    });
    child.on('error', reject);
    child.on('close', (status, signal) => {
      if (status === 0) resolve(JSON.parse(out) as SoakResult);
      else reject(new Error(`the soak ended with ${signal ?? status}: ${err.slice(-2000)}`));
    });
  });
}
