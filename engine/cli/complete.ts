/** `kvasir complete`: what the editor would show as ghost text at a position. */
import { RequestError } from '../errors.ts';
import { type CommandLine, number, required, samplingOf, UsageError } from './options.ts';
import { printJson, statsLine } from './output.ts';
import { runTask, withClient } from './session.ts';

/** UTF-16 offset of a 1-based line and column, as editors show them. */
export function offsetAt(text: string, line: number, column: number): number {
  let start = 0;
  for (let l = 1; l < line; l++) {
    const end = text.indexOf('\n', start);
    if (end < 0) throw new RequestError('badRequest', `--line ${line}: the file has ${l} lines`);
    start = end + 1;
  }
  let end = text.indexOf('\n', start);
  if (end < 0) end = text.length;
  if (end > start && text[end - 1] === '\r') end--;
  if (start + column - 1 > end) throw new RequestError('badRequest', `--column ${column}: line ${line} has ${end - start} characters`);
  const offset = start + column - 1;
  // Columns count UTF-16 units, as the editor does; none lies between the halves of a character.
  if (/[\uD800-\uDBFF]/.test(text[offset - 1] ?? '') && /[\uDC00-\uDFFF]/.test(text[offset] ?? '')) throw new RequestError('badRequest', `--column ${column}: is in the middle of a character`);
  return offset;
}

/** Candidates after the first are sampled: the first is what the editor shows. */
const CANDIDATE_TEMPERATURE = 0.6;

export async function complete(line: CommandLine): Promise<number> {
  const file = required(line, 'file');
  const row = number(line, 'line', 1, Number.MAX_SAFE_INTEGER);
  const column = number(line, 'column', 1, Number.MAX_SAFE_INTEGER);
  if (row === undefined || column === undefined) throw new UsageError('complete: --line and --column are needed');
  const n = number(line, 'n', 1, 16) ?? 1;
  const sampling = samplingOf(line);
  return withClient(line, async (client) => {
    const { docId, text } = await client.openFile(file);
    const offset = offsetAt(text, row, column);
    const task = { kind: 'complete', docId, offset } as const;
    await runTask(line, client, task, { id: 'complete', sampling });
    // The candidates run together in one engine, over one prompt.
    const others = Array.from({ length: n - 1 }, (_, i) => runTaskSampled(i + 1));
    for (const print of await Promise.all(others)) print();
    if (line.json) printJson(statsLine(await client.stats()));
    return 0;

    async function runTaskSampled(index: number): Promise<() => void> {
      const done = await client.generate(task, { id: `complete-${index}`, sampling: { temperature: CANDIDATE_TEMPERATURE, ...sampling, seed: (sampling.seed ?? 0) + index } });
      return () => {
        if (line.json) printJson({ type: 'done', id: `complete-${index}`, finishReason: done.finishReason, text: done.text, tokenIds: done.tokenIds, logprobs: done.logprobs, usage: done.usage, timings: done.timings });
        else process.stdout.write(`${done.text}\n`);
      };
    }
  });
}
