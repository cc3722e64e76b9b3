/**
 * Suite `editor`: replays the recorded session in code-server and Chromium, with the packaged extension and without it.
 * Measures event loop and processor time of the extension host in both. Needs the tools of the editor tests.
 * KVASIR_VSIX names the package; by default the suite builds one.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Editor } from '../vscode/editor.ts';
import { buildPackage } from '../vscode/globalSetup.ts';
import { cpuMs } from '../vscode/processes.ts';
import { startServer } from '../vscode/server.ts';
import { type EditorFiles, prepareEditor } from '../vscode/setup.ts';
import { type EditorFigures, editorFigures, readLog } from './editorFigures.ts';
import { type EventLoopDelay, HELPER_FILES, whileMeasured } from '../vscode/eventLoop.ts';
import { type Replay, replay } from '../vscode/editorReplay.ts';
import { readSession, type Session } from '../support/session/session.ts';

/** Processor time after the session, when nobody types. */
export interface Quiet {
  /** Length of the measurement in seconds. */
  seconds: number;
  /**
   * Milliseconds of the engine's threads in the first five seconds, including queued idle work, and in all later
   * seconds.
   */
  engineFirstMs: number;
  engineLaterMs: number;
  /** Share of one processor that the whole extension host used after the first five seconds. */
  laterPercent: number;
  /** Milliseconds by thread name, for each second. */
  eachSecond: Record<string, number>[];
}

export interface EditorBench {
  withKvasir: { figures: EditorFigures; eventLoop: EventLoopDelay; quiet: Quiet; cpuSeconds: number };
  without: { eventLoop: EventLoopDelay; quiet: Quiet; cpuSeconds: number };
  /** Every key and every ghost text with its time, and the extension's log. The log contains no code. */
  raw: Replay & { log: string };
}

const SAMPLE_MS = 250;
/** All work must have ended after this time. */
const SETTLE_SECONDS = 5;
const ENGINE_THREADS = /^kvasir/;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** @param watchedSeconds how long the extension host is watched after the session. */
export async function editorBench({ session = readSession(), watchedSeconds = 40 } = {}): Promise<EditorBench> {
  const files = await prepareEditor(path.resolve('.cache'));
  const vsix = process.env.KVASIR_VSIX ?? buildPackage(path.resolve('.cache'), `${process.platform}-${process.arch}`);
  const { log, played, ...withKvasir } = await play(files, session, watchedSeconds, vsix);
  const { log: _, played: __, ...without } = await play(files, session, watchedSeconds);
  return {
    withKvasir: { figures: editorFigures(played, readLog(log)), ...withKvasir },
    without,
    raw: { ...played, log },
  };
}

/** One run in its own server, with or without the extension. */
export async function play(
  files: EditorFiles,
  session: Session,
  watchedSeconds: number,
  vsix?: string,
): Promise<{ played: Replay; eventLoop: EventLoopDelay; quiet: Quiet; cpuSeconds: number; log: string }> {
  const { address, stop } = await startServer(files, vsix);
  try {
    const window = await Editor.open(address, {
      ...Object.fromEntries(session.files.map(({ file, text }) => [file, text])),
      ...HELPER_FILES,
    });
    const before = cpuMs(window.extensionHost).all;
    const { result: played, delay: eventLoop } = await whileMeasured(window, () =>
      replay(window, session, { assistant: vsix !== undefined }),
    );
    const cpuSeconds = (cpuMs(window.extensionHost).all - before) / 1000;
    const quiet = await watch(window.extensionHost, watchedSeconds);
    const log = logFile(path.join(address.folder, 'user/logs'));
    await window.close();
    return { played, eventLoop, quiet, cpuSeconds, log: log ? readFileSync(log, 'utf8') : '' };
  } finally {
    await stop();
  }
}

/** Watches an extension host after the session, when nobody types. */
async function watch(pid: number, seconds: number): Promise<Quiet> {
  const started = performance.now();
  const samples: Sample[] = [];
  while (performance.now() - started < seconds * 1000) {
    samples.push({ at: (performance.now() - started) / 1000, ...cpuMs(pid) });
    await sleep(SAMPLE_MS);
  }
  const at = (second: number): Sample => samples.find((sample) => sample.at >= second) ?? (samples.at(-1) as Sample);
  const engineMs = (from: number, to: number): number =>
    Object.entries(usedBetween(at(from), at(to))).reduce(
      (sum, [name, ms]) => sum + (ENGINE_THREADS.test(name) ? ms : 0),
      0,
    );
  const [end, settled] = [at(seconds), at(SETTLE_SECONDS)];
  return {
    seconds,
    engineFirstMs: engineMs(0, SETTLE_SECONDS),
    engineLaterMs: engineMs(SETTLE_SECONDS, seconds),
    laterPercent: (end.all - settled.all) / (end.at - settled.at) / 10,
    eachSecond: Array.from({ length: Math.floor(end.at) }, (_, second) => usedBetween(at(second), at(second + 1))),
  };
}

interface Sample {
  at: number;
  all: number;
  threads: Map<string, number>;
}

/** Milliseconds by thread name. Omits threads that used no time. */
function usedBetween(first: Sample, last: Sample): Record<string, number> {
  return Object.fromEntries(
    [...last.threads]
      .map(([name, ms]) => [name, ms - (first.threads.get(name) ?? 0)] as const)
      .filter(([, ms]) => ms > 0),
  );
}

function logFile(folder: string): string | undefined {
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('Kvasir.log'));
  return found && path.join(folder, found);
}
