/** Starts a soak in its own process. Does not judge its result. */
import { spawn } from 'node:child_process';
import path from 'node:path';
import { MAX_YOUNG_MB } from '../../../src/client/transport.ts';
import type { SoakOptions, SoakResult } from './soakRun.ts';

/** Resident memory may grow by this much per 1,000 requests over the last half of a run. */
export const MAX_GROWTH_BYTES = 1e6;

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
      { stdio: ['ignore', 'pipe', 'pipe'] },
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
    child.on('close', (status) => {
      if (status === 0) resolve(JSON.parse(out) as SoakResult);
      else reject(new Error(`the soak ended with ${status}: ${err.slice(-2000)}`));
    });
  });
}
