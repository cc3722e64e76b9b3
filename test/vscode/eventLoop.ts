/**
 * Measures how late an extension host's event loop runs, through the helper extension in
 * test/vscode/helpers/event-loop.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Editor } from './editor.ts';

/** Delays are in milliseconds. */
export interface EventLoopDelay {
  seconds: number;
  samples: number;
  meanMs: number;
  p50Ms: number;
  p90Ms: number;
  p99Ms: number;
  p999Ms: number;
  maxMs: number;
}

/** A window needs these files for the helper to run in it. */
export const HELPER_FILES = { '.event-loop/command': '' };

/** Measures while `work` runs. */
export async function whileMeasured<T>(
  window: Editor,
  work: () => Promise<T>,
): Promise<{ result: T; delay: EventLoopDelay }> {
  const file = (name: string) => window.file(`.event-loop/${name}`);
  await until(() => existsSync(file('ready')));
  rmSync(file('result.json'), { force: true });
  const id = String(Date.now());
  writeFileSync(file('command'), `start ${id}`);
  const result = await work();
  writeFileSync(file('command'), `stop ${id}`);
  await until(() => existsSync(file('result.json')));
  return { result, delay: JSON.parse(readFileSync(file('result.json'), 'utf8')) as EventLoopDelay };
}

async function until(holds: () => boolean): Promise<void> {
  for (const end = performance.now() + 60_000; !holds(); await new Promise((resolve) => setTimeout(resolve, 50))) {
    if (performance.now() > end) throw new Error('the helper extension did not answer within a minute');
  }
}
