/** The command `kvasir generate`: continues one raw prompt, or a file of requests that run together in one engine. */
import { setTimeout as sleep } from 'node:timers/promises';
import { RequestError } from '../protocol/errors.ts';
import type { Priority, SamplingParams, Task } from '../protocol/tasks.ts';
import type { Client } from './cliClient.ts';
import { MAX_INPUT_BYTES, readTextFile } from './cliFiles.ts';
import { type CommandLine, samplingOf, text } from './options.ts';
import { UsageError } from './usageError.ts';
import { doneLine, log, printJson, statsLine } from './output.ts';
import { runTask, withClient, withRemedy } from './session.ts';

interface Request {
  task: Task;
  priority: Priority;
  sampling: SamplingParams;
  arriveMs: number;
}

/** What a request line may set. Other keys are ignored. */
const SAMPLING_KEYS: readonly (keyof SamplingParams)[] = [
  'temperature',
  'topP',
  'topK',
  'repetitionPenalty',
  'seed',
  'maxTokens',
  'stop',
  'ignoreEos',
  'logprobs',
  'topLogprobs',
];
const PRIORITIES: readonly string[] = ['completion', 'chat', 'summary'];

export async function generate(line: CommandLine): Promise<number> {
  const [prompt, ids, file] = [text(line, 'prompt'), text(line, 'ids'), text(line, 'requests')];
  if ([prompt, ids, file].filter((given) => given !== undefined).length !== 1)
    throw new UsageError('generate: exactly one of --prompt, --ids and --requests is needed');
  const sampling = samplingOf(line);
  const single = prompt ?? (ids === undefined ? undefined : tokenIdsOf(ids));
  const lines = file === undefined ? [] : await requestLines(file);
  return withClient(line, async (client) => {
    let failed = 0;
    if (single !== undefined) {
      await runTask(line, client, { kind: 'raw', prompt: single }, { id: '0', sampling }).catch((error: unknown) => {
        if (!line.json) throw error;
        failed += report(line, '0', error);
      });
    } else {
      const results = await Promise.all(lines.map((request) => runLine(line, client, request, sampling)));
      failed = results.filter((ok) => !ok).length;
    }
    if (line.json) printJson(statsLine(await client.stats()));
    if (failed) log(`kvasir: ${failed} of ${Math.max(1, lines.length)} requests failed; see their error lines`);
    return failed ? 1 : 0;
  });
}

function tokenIdsOf(list: string): number[] {
  const ids = list.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)));
  if (!ids.every((id) => Number.isInteger(id) && id >= 0))
    throw new UsageError(`--ids ${list}: expected token ids separated by commas`);
  return ids;
}

interface RequestLine {
  /** Line number in the file, from 1. */
  number: number;
  source: string;
}

/** The lines that are not blank. */
async function requestLines(file: string): Promise<RequestLine[]> {
  const lines = (await readTextFile(file, MAX_INPUT_BYTES, true))
    .split('\n')
    .map((source, i) => ({ number: i + 1, source }))
    .filter(({ source }) => source.trim());
  if (!lines.length)
    throw new RequestError('badRequest', `${file}: contains no requests; each is a line such as {"prompt": "..."}`);
  return lines;
}

async function runLine(
  line: CommandLine,
  client: Client,
  { source, number }: RequestLine,
  defaults: SamplingParams,
): Promise<boolean> {
  // The id keeps the type that the request line gives it.
  let id: unknown = String(number);
  try {
    const value = objectOf(source, number);
    if (value.id !== undefined) id = value.id;
    const request = requestOf(value, number, defaults);
    if (request.arriveMs) await sleep(request.arriveMs);
    const done = await client.generate(request.task, {
      id: String(id),
      priority: request.priority,
      sampling: request.sampling,
      onChunk: line.json
        ? (chunk) =>
            printJson({ type: 'chunk', id, text: chunk.text, tokenIds: chunk.tokenIds, logprobs: chunk.logprobs })
        : undefined,
    });
    if (line.json) printJson(doneLine(id, done));
    else process.stdout.write(`[${id}] ${done.text}\n`);
    return true;
  } catch (error) {
    report(line, id, await withRemedy(line, error));
    return false;
  }
}

function report(line: CommandLine, id: unknown, error: unknown): 1 {
  const { code, message } = error instanceof RequestError ? error : { code: 'engineFailed', message: String(error) };
  if (line.json) printJson({ type: 'error', id, code, message });
  else log(`[${id}] ${message}`);
  return 1;
}

const badLine = (number: number, why: string) =>
  new RequestError('badRequest', `line ${number} of the requests: ${why}`);

function objectOf(source: string, number: number): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch {
    throw badLine(number, 'not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw badLine(number, 'not an object');
  return value as Record<string, unknown>;
}

/** @throws RequestError for this line only */
function requestOf(value: Record<string, unknown>, number: number, defaults: SamplingParams): Request {
  const bad = (why: string) => badLine(number, why);
  const { ids, prompt, priority, arriveMs } = value;
  if ((ids === undefined) === (prompt === undefined)) throw bad('exactly one of "ids" and "prompt" is needed');
  if (ids !== undefined && !(Array.isArray(ids) && ids.every((i) => Number.isInteger(i) && i >= 0)))
    throw bad('"ids" must be a list of token ids');
  if (prompt !== undefined && typeof prompt !== 'string') throw bad('"prompt" must be a string');
  if (priority !== undefined && !PRIORITIES.includes(priority as string))
    throw bad(`"priority" must be one of ${PRIORITIES.join(', ')}`);
  if (arriveMs !== undefined && !(typeof arriveMs === 'number' && arriveMs >= 0 && arriveMs < 2 ** 31))
    throw bad('"arriveMs" must be a number of milliseconds');
  return {
    task: { kind: 'raw', prompt: (ids ?? prompt) as string | number[] },
    priority: (priority as Priority) ?? 'completion',
    sampling: {
      ...defaults,
      ...Object.fromEntries(SAMPLING_KEYS.filter((key) => value[key] !== undefined).map((key) => [key, value[key]])),
    },
    arriveMs: (arriveMs as number) ?? 0,
  };
}
