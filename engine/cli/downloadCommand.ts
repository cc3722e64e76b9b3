/**
 * The command `kvasir download`: brings a model of the Hugging Face hub into that hub's cache on this machine, continuing
 * what an earlier run has brought. Loads no model.
 */
import { homedir } from 'node:os';
import { type Choice, choiceNamed, choicesOf } from '../download/choices.ts';
import { download as fetchModel, type Progress } from '../download/download.ts';
import { Hub } from '../download/hub.ts';
import { hubFolder } from '../download/hubCache.ts';
import { KNOWN_MODELS } from '../download/knownModels.ts';
import { DownloadError } from '../download/problem.ts';
import { Rate } from '../download/rate.ts';
import { type CommandLine, text } from './options.ts';
import { UsageError } from './usageError.ts';
import { bytes, log, paced, print, printJson } from './output.ts';
import { proxyFetch } from './proxyFetch.ts';

export async function download(line: CommandLine): Promise<number> {
  const name = line.positionals[0];
  if (name === undefined) throw new UsageError('download: name a repository of the Hugging Face hub, as in owner/name');
  const { env } = process;
  const hub = new Hub({ endpoint: env.HF_ENDPOINT, token: env.HF_TOKEN, fetch: await proxyFetch(env) });
  const known = KNOWN_MODELS.find(({ repository }) => repository === name);
  const revision = text(line, 'revision') ?? known?.revision ?? 'main';
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  process.once('SIGINT', onSignal);
  try {
    const listing = await hub.list(name, revision, stop.signal);
    const choice = choose(name, choicesOf(listing.files), text(line, 'file') ?? known?.format);
    log(`${name} at ${listing.commit.slice(0, 7)}: ${choice.path || 'safetensors'}, ${bytes(choice.bytes)}`);
    const folder = hubFolder({ env, home: homedir() });
    const onProgress = showProgress();
    const path = await fetchModel({ hub, folder, listing, revision, choice, signal: stop.signal, onProgress });
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[2K');
    if (line.json)
      printJson({ type: 'downloaded', path, repository: name, commit: listing.commit, bytes: choice.bytes });
    else print(path);
    return 0;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    log('\nStopped. What is here is kept: run the same command to continue.');
    return 1;
  } finally {
    process.off('SIGINT', onSignal);
  }
}

/** @throws DownloadError if there is no model, Error with the list if there are several */
function choose(repository: string, choices: readonly Choice[], wanted: string | undefined): Choice {
  if (choices.length === 0) throw new DownloadError({ kind: 'noModel', repository });
  const found = wanted === undefined ? undefined : choiceNamed(choices, wanted);
  if (found) return found;
  if (choices.length === 1 && wanted === undefined) return choices[0]!;
  const list = choices.map(({ path, bytes: size }) => `  ${bytes(size).padStart(8)}  ${path || 'safetensors'}`);
  const what = wanted === undefined ? `${repository} has several models` : `${repository} has no ${wanted}`;
  throw new Error(`${what}; name one of these with --file:\n${list.join('\n')}`);
}

const STATES = {
  loading: '',
  checking: ', checking',
  waiting: ', loaded by another process',
  retrying: ', cut; again',
};

function showProgress(): (progress: Progress) => void {
  const { stderr } = process;
  const rate = new Rate();
  let last = '';
  const tell = paced(
    stderr.isTTY ? (words) => void stderr.write(`\r\x1b[2K${words}`) : log,
    undefined,
    undefined,
    stderr.isTTY ? 200 : undefined,
  );
  return ({ doneBytes, totalBytes, state }) => {
    if (state !== last && state !== 'loading') rate.reset();
    last = state;
    if (state === 'loading') rate.add(doneBytes);
    const perSecond = rate.bytesPerSecond;
    const seconds = rate.secondsLeft(totalBytes - doneBytes);
    const speed = perSecond === null || state !== 'loading' ? '' : `, ${bytes(perSecond)}/s`;
    const time = seconds === null || state !== 'loading' ? '' : `, ${remaining(seconds)} left`;
    tell(`${bytes(doneBytes)} of ${bytes(totalBytes)}${STATES[state]}${speed}${time}`);
  };
}

/** "12 s", "3 min", "1 h 5 min" */
function remaining(seconds: number): string {
  const minutes = Math.round(seconds / 60);
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
