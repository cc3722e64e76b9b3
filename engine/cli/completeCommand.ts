/** The command `kvasir complete`: prints the completion that Trigger Completion of the editor shows at a position. */
import { readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { SEGMENT_TOKENS } from '../kv/disk/segment.ts';
import { RequestError } from '../protocol/errors.ts';
import { candidateSampling, type Task } from '../protocol/tasks.ts';
import type { Done } from './cliClient.ts';
import { type CommandLine, kvCacheDirOf, number, required, samplingOf, texts } from './options.ts';
import { UsageError } from './usageError.ts';
import { doneLine, log, printJson, statsLine } from './output.ts';
import { leadsToSecret } from './cliFiles.ts';
import { runTask, withClient } from './session.ts';

/** The UTF-16 offset of a line and column, both from 1, as editors show them. */
export function offsetAt(text: string, line: number, column: number): number {
  let start = 0;
  for (let l = 1; l < line; l++) {
    const end = text.indexOf('\n', start);
    if (end < 0) throw new RequestError('badRequest', `--line ${line}: the last line of the file is ${l}`);
    start = end + 1;
  }
  let end = text.indexOf('\n', start);
  if (end < 0) end = text.length;
  if (end > start && text[end - 1] === '\r') end--;
  if (start + column - 1 > end)
    throw new RequestError('badRequest', `--column ${column}: line ${line} has ${end - start} characters`);
  const offset = start + column - 1;
  // Columns count UTF-16 units, as in the editor. A surrogate pair must not be split.
  if (/[\uD800-\uDBFF]/.test(text[offset - 1] ?? '') && /[\uDC00-\uDFFF]/.test(text[offset] ?? ''))
    throw new RequestError('badRequest', `--column ${column} is in the middle of a character`);
  return offset;
}

export async function complete(line: CommandLine): Promise<number> {
  const file = required(line, 'file');
  const row = number(line, 'line', 1, Number.MAX_SAFE_INTEGER);
  const column = number(line, 'column', 1, Number.MAX_SAFE_INTEGER);
  if (row === undefined || column === undefined) throw new UsageError('complete: --line and --column are needed');
  const n = number(line, 'n', 1, 16) ?? 1;
  const sampling = samplingOf(line);
  const kvCacheDir = kvCacheDirOf(line);
  const keptBefore = await keptIn(kvCacheDir);
  const { cachedTokens } = await withClient(line, async (client) => {
    const { docId, text } = await client.openFile(file);
    const copySources: string[] = [];
    for (const other of texts(line, 'open-file')) copySources.push((await client.openFile(other)).docId);
    // Low-confidence text is shown, as with Trigger Completion of the editor.
    const task = {
      kind: 'complete',
      docId,
      offset: offsetAt(text, row, column),
      copySources,
      showLowConfidence: true,
    } as const satisfies Task;
    let others: Promise<Done>[] = [];
    const seen = new Set(['']);
    const printOthers = async (first: string) => {
      seen.add(first);
      for (const [i, other] of others.entries()) {
        const done = await other;
        if (line.json) printJson(doneLine(`complete-${i + 1}`, done));
        else if (!seen.has(done.text)) process.stdout.write(`${done.text}\n`);
        seen.add(done.text);
      }
    };
    const first = runTask(line, client, task, { id: 'complete', sampling }, { beforeFooter: printOthers });
    // Sent together, so that the prompt is computed once, and each step decodes a token of every candidate. Sent after
    // the first one, so that the figures of the first one show what was in the cache before.
    others = Array.from({ length: n - 1 }, (_, i) =>
      client.generate(
        { ...task, showLowConfidence: 'line' },
        { id: `complete-${i + 1}`, sampling: candidateSampling(i + 1, sampling) },
      ),
    );
    for (const other of others) other.catch(() => undefined);
    const { usage } = await first;
    if (n > 1) log(`${seen.size - 1} different of ${n} candidates`);
    if (line.json) printJson(statsLine(await client.stats()));
    return usage;
  });
  // The rows are written when the engine closes.
  const isNew = (await keptIn(kvCacheDir)).some((name) => !keptBefore.includes(name));
  if (kvCacheDir !== undefined && cachedTokens === 0 && !isNew)
    log(`note: nothing was written to ${kvCacheDir}: ${await whyNotKept(file)}`);
  return 0;
}

async function keptIn(dir: string | undefined): Promise<string[]> {
  return dir === undefined ? [] : readdir(dir).catch(() => []);
}

async function whyNotKept(file: string): Promise<string> {
  if (await leadsToSecret(resolve(file))) return 'files with secrets are never written';
  return `only whole segments of ${SEGMENT_TOKENS} tokens above the lines around the cursor are written`;
}
