/** Formats and prints output: results on stdout, everything else on stderr. Does not run requests. */
import type { Done } from './cliClient.ts';
import type { EngineStats } from '../protocol/stats.ts';

export function printJson(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function log(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** The `done` line of `--json`. Its fields must not change, because other programs read it. */
export function doneLine(id: unknown, done: Done): object {
  const { finishReason, text, tokenIds, logprobs, topLogprobs, usage, timings, diagnostics, source, reasoning } = done;
  return {
    type: 'done',
    id,
    finishReason,
    text,
    ...(reasoning === undefined ? {} : { reasoning }),
    tokenIds,
    logprobs,
    topLogprobs: topLogprobs ?? [],
    usage,
    timings,
    diagnostics,
    ...(source ? { source } : {}),
  };
}

export function statsLine(stats: EngineStats): object {
  return { type: 'stats', ...stats };
}

export { formatBytes as bytes } from '../protocol/formatBytes.ts';

export function count(n: number): string {
  return n.toLocaleString('en-US');
}

/** Aligns columns: the first to the left, the others to the right. */
export function table(rows: string[][]): string {
  const widths = rows[0]!.map((_, c) => Math.max(...rows.map((r) => (r[c] ?? '').length)));
  return rows
    .map((r) => r.map((cell, c) => (c ? cell.padStart(widths[c]!) : cell.padEnd(widths[c]!))).join('  '))
    .join('\n');
}

/** Time between two progress lines. */
const MIN_PROGRESS_MS = 5000;

/** Passes on at most one text every `everyMs`, the first one not before `firstMs`. */
export function paced(
  tell: (text: string) => void,
  clock: () => number = () => performance.now(),
  firstMs = Number.NEGATIVE_INFINITY,
  everyMs = MIN_PROGRESS_MS,
): (text: string) => void {
  let next = firstMs;
  return (text) => {
    if (clock() < next) return;
    next = clock() + everyMs;
    tell(text);
  };
}

/** Shows progress: on a terminal in one line that is overwritten, otherwise a line every five seconds. */
export function progressOf(
  what: string,
  out: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> = process.stderr,
  clock: () => number = () => performance.now(),
): (numDone: number, numTotal: number) => void {
  const tell = out.isTTY
    ? (text: string) => void out.write(`\r\x1b[2K${text}`)
    : paced((text) => void out.write(`${text}\n`), clock, clock() + MIN_PROGRESS_MS);
  return (numDone, numTotal) => {
    if (numDone < numTotal) tell(`${numDone} of ${numTotal} ${what}`);
    else if (out.isTTY) tell('');
  };
}

/** "80 files, 79,035 tokens, in 45 s" */
export function folderFooter(numFiles: number, { usage }: Done, ms: number): string {
  const tokens = usage.promptTokens > 0 ? `, ${count(usage.promptTokens)} tokens,` : '';
  return `${count(numFiles)} ${numFiles === 1 ? 'file' : 'files'}${tokens} in ${(ms / 1000).toFixed(ms < 9950 ? 1 : 0)} s`;
}

export const MODEL_NOTE = 'written by the model, so it may be wrong';

/** Whether the model wrote the text. */
export const isOfModel = ({ source, usage }: Done): boolean => source === undefined && usage.promptTokens > 0;

/** "8,112 of 8,164 tokens reused · first token 61 ms · 44 tok/s" */
export function footer(done: Done): string {
  const { usage, timings } = done;
  if (usage.promptTokens === 0) return 'answered without the model';
  const parts = [
    `${count(usage.cachedTokens)} of ${count(usage.promptTokens)} tokens reused`,
    `first token ${timings.ttftMs.toFixed(0)} ms`,
  ];
  if (timings.tpotMs > 0) parts.push(`${(1000 / timings.tpotMs).toFixed(0)} tok/s`);
  if (usage.shiftedTokens) parts.push(`${count(usage.shiftedTokens)} approximated`);
  if (usage.inParts) parts.push('read in parts');
  return parts.join(' · ');
}
