/**
 * Builds the package, prepares VS Code and the browser, and starts and stops one server of each per test process.
 * KVASIR_VSIX names a package that is already built. If the tests cannot run, they are skipped and the reason is shown.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { type EditorServerAddress, startServer } from './server.ts';
import { prepareEditor } from './setup.ts';
import { WORKERS } from './workers.mts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The running servers, one for each test process, or the reason why there are none. */
    servers: EditorServerAddress[] | string;
    /** Absolute path of the package under test. */
    vsix: string;
  }
}

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const platform = `${process.platform}-${process.arch}`;
  if (platform !== 'linux-x64') {
    project.provide('servers', `VS Code and Chromium come as npm packages for linux-x64 only, this is ${platform}`);
    project.provide('vsix', '');
    return undefined;
  }
  const cache = path.resolve('.cache');
  // This also builds the command line that the tests compare with. Packaging builds it as well.
  if (process.env.KVASIR_VSIX) run('esbuild.mjs', '--minify', '--quiet');
  const vsix = process.env.KVASIR_VSIX ? path.resolve(process.env.KVASIR_VSIX) : buildPackage(cache, platform);
  const files = await prepareEditor(cache);
  const started: Awaited<ReturnType<typeof startServer>>[] = [];
  const stop = async () => {
    const failed = (await Promise.allSettled(started.map((server) => server.stop()))).find(
      (result) => result.status === 'rejected',
    );
    if (failed) throw failed.reason;
  };
  const starts = await Promise.allSettled(Array.from({ length: WORKERS }, () => startServer(files, vsix)));
  for (const start of starts) if (start.status === 'fulfilled') started.push(start.value);
  const refused = starts.find((start) => start.status === 'rejected');
  if (refused) {
    await stop();
    throw refused.reason;
  }
  project.provide(
    'servers',
    started.map(({ address }) => address),
  );
  project.provide('vsix', vsix);
  return stop;
}

/** Builds a package from the working tree and returns its absolute path. */
export function buildPackage(cache: string, target: string): string {
  const vsix = path.join(cache, 'kvasir.vsix');
  mkdirSync(cache, { recursive: true });
  rmSync(vsix, { force: true });
  run('scripts/package.mjs', '--target', target, '--out', vsix);
  return vsix;
}

function run(script: string, ...args: string[]): void {
  const { status, stdout, stderr, error } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  if (status !== 0)
    throw new Error(`editor tests: ${script} ${args[0]} failed: ${error?.message ?? `${stdout}${stderr}`.trim()}`);
}
