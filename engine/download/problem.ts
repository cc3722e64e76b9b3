/** What can go wrong with a download, and the sentence for each. Does not decide what is tried again. */
import { formatBytes } from '../protocol/formatBytes.ts';
import { oneLine } from '../protocol/oneLine.ts';
import { english, type Translate } from '../protocol/translate.ts';

/** `host`: the hub's, or that of the server it redirects to. */
export type Problem =
  | { kind: 'badName'; name: string }
  | { kind: 'badEndpoint' }
  | { kind: 'badToken' }
  | { kind: 'openToken'; host: string }
  | { kind: 'gated'; repository: string; host: string; hasToken: boolean }
  | { kind: 'notFound'; repository: string; host: string }
  | { kind: 'fileNotFound'; file: string; repository: string }
  | { kind: 'noModel'; repository: string }
  | { kind: 'badListing'; host: string; reason: BadAnswer }
  | { kind: 'status'; host: string; status: number }
  | { kind: 'busy'; host: string; status: number }
  | { kind: 'unreachable'; host: string; reason: string }
  | { kind: 'slowListing'; host: string; repository: string }
  | { kind: 'cut'; file: string; doneBytes: number; totalBytes: number }
  | { kind: 'changed'; file: string }
  | { kind: 'wrongHash'; file: string }
  | { kind: 'noSpace'; folder: string; neededBytes: number; freeBytes: number }
  | { kind: 'diskFull'; folder: string }
  | { kind: 'cannotWrite'; folder: string; reason: string }
  | { kind: 'taken'; file: string };

/** What Node and its fetch call a server that says nothing. */
const SILENT = /^(?:ETIMEDOUT|UND_ERR_(?:CONNECT|HEADERS|BODY)_TIMEOUT)$/;

/** Why an answer of the hub cannot be used. */
export type BadAnswer =
  | 'noCommit'
  | 'noJson'
  | 'noList'
  | 'badEntry'
  | 'tooManyFiles'
  | 'tooLong'
  | 'badAddress'
  | 'unencrypted'
  | 'tooManyRedirects';

export class DownloadError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(oneLine(describeProblem(problem, english, formatBytes)));
    this.name = 'DownloadError';
    this.problem = problem;
  }
}

/** One sentence for the user, or two: what happened, and what to do. */
export function describeProblem(problem: Problem, t: Translate, bytes: (value: number) => string): string {
  switch (problem.kind) {
    case 'badName':
      return t('{0} is not the name of a repository; it has the form owner/name.', problem.name || '""');
    case 'badEndpoint':
      return t('HF_ENDPOINT must be an address of the web without a user name, password, query or fragment.');
    case 'badToken':
      return t('The access token has characters that no token has. Correct HF_TOKEN, or enter the token again.');
    case 'openToken':
      return t(
        'The access token is not sent to {0} without encryption. Use an https address, or no token.',
        problem.host,
      );
    case 'gated':
      return problem.hasToken
        ? t('{0} refuses {1} to this access token.', problem.host, problem.repository)
        : t('{0} gives {1} only to accounts with access: it needs an access token.', problem.host, problem.repository);
    case 'notFound':
      return t('{0} does not exist on {1}, or it is private.', problem.repository, problem.host);
    case 'fileNotFound':
      return t('{0} does not exist in {1}.', problem.file, problem.repository);
    case 'noModel':
      return t('{0} has no GGUF file and no folder with safetensors that could be a model.', problem.repository);
    case 'badListing':
      return t('The answer of {0} cannot be used: {1}', problem.host, describeAnswer(problem.reason, t));
    case 'status':
      return t('{0} refuses the request with status {1}.', problem.host, problem.status);
    case 'busy':
      return t('{0} cannot answer now (status {1}). What is already here is kept.', problem.host, problem.status);
    case 'slowListing':
      return t('{0} takes too long to list the files of {1}. Try again later.', problem.host, problem.repository);
    case 'unreachable':
      if (SILENT.test(problem.reason)) return t('{0} does not answer. Try again later.', problem.host);
      return problem.reason
        ? t('{0} cannot be reached: {1}', problem.host, problem.reason)
        : t('{0} cannot be reached.', problem.host);
    case 'cut':
      return t(
        'The connection was cut after {0} of {1}. This part is kept: start again to continue.',
        bytes(problem.doneBytes),
        bytes(problem.totalBytes),
      );
    default:
      return describeDiskProblem(problem, t, bytes);
  }
}

function describeAnswer(reason: BadAnswer, t: Translate): string {
  switch (reason) {
    case 'noCommit':
      return t('it names no commit');
    case 'noJson':
      return t('it is no JSON');
    case 'noList':
      return t('it is no list of files');
    case 'badEntry':
      return t('a file of the model has an unusable name, size or hash');
    case 'tooManyFiles':
      return t('it lists too many files');
    case 'tooLong':
      return t('it is too long');
    case 'badAddress':
      return t('it leads to an unusable address');
    case 'unencrypted':
      return t('it leads to an address without encryption');
    case 'tooManyRedirects':
      return t('it leads from one address to the next without an end');
  }
}

function describeDiskProblem(
  problem: Extract<Problem, { kind: 'changed' | 'wrongHash' | 'noSpace' | 'diskFull' | 'cannotWrite' | 'taken' }>,
  t: Translate,
  bytes: (value: number) => string,
): string {
  switch (problem.kind) {
    case 'changed':
      return t('{0} is not what the hub lists: its size differs. It was removed.', problem.file);
    case 'wrongHash':
      return t('{0} arrived damaged: its hash is wrong. It was removed; start again to repeat it.', problem.file);
    case 'noSpace':
      return t(
        'The disk of {0} has {1} free, but {2} are needed.',
        problem.folder,
        bytes(problem.freeBytes),
        bytes(problem.neededBytes),
      );
    case 'diskFull':
      return t('The disk of {0} is full. What is already here is kept: start again to continue.', problem.folder);
    case 'cannotWrite':
      return t('{0} cannot be written: {1}', problem.folder, problem.reason);
    case 'taken':
      return t('Another process has taken over the download of {0}.', problem.file);
  }
}
