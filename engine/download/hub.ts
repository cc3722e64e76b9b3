/**
 * The Hugging Face hub as HTTP: the commit and the files of a repository, and the bytes of one file. Sends the access
 * token to the hub's own origin only. Does not write files or try again.
 *
 * Its own instead of @huggingface/hub: that takes tokens of one form only, follows redirects by itself, and needs two
 * packages more for two GET requests.
 */
import { fileOf, type HubFile, isNeeded } from './hubFile.ts';
import { type BadAnswer, DownloadError } from './problem.ts';
import { either, MAX_SILENCE_MS, textOf, unlessAborted } from './waiting.ts';

export type { HubFile };

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface HubOptions {
  /** `HF_ENDPOINT`; empty or left out: huggingface.co. May have a path. */
  endpoint?: string;
  token?: string;
  fetch: Fetch;
}

export interface Listing {
  repository: string;
  /** The commit that the revision named. */
  commit: string;
  files: HubFile[];
}

/** The repository of a revision, or one file of it. */
interface Place {
  repository: string;
  file?: string;
}

const HUGGING_FACE = 'https://huggingface.co';
const MAX_REDIRECTS = 8;
/** Pages of a listing. A page has up to a thousand files. */
const MAX_PAGES = 20;
const MAX_FILES = 20_000;
const MAX_PAGE_BYTES = 4e6;
/** Time for all answers of a listing. */
const MAX_LISTING_MS = 120_000;

export class Hub {
  readonly endpoint: URL;
  readonly #token: string;
  readonly #fetch: Fetch;

  /** @throws DownloadError */
  constructor({ endpoint, token, fetch }: HubOptions) {
    this.endpoint = endpointOf(endpoint || HUGGING_FACE);
    this.#token = token?.trim() ?? '';
    this.#fetch = fetch;
  }

  get host(): string {
    return this.endpoint.host;
  }

  /** The page of a repository, for a browser. */
  pageOf(repository: string): string {
    return this.#url(repository);
  }

  /**
   * Ends when `signal` says so, and in any case after MAX_LISTING_MS.
   * @throws DownloadError, or the signal's reason
   */
  async list(repository: string, revision: string, signal?: AbortSignal): Promise<Listing> {
    if (!isRepository(repository)) throw new DownloadError({ kind: 'badName', name: repository });
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), MAX_LISTING_MS);
    try {
      return await this.#list(repository, revision, either(signal, late.signal));
    } catch (error) {
      signal?.throwIfAborted();
      if (late.signal.aborted) throw new DownloadError({ kind: 'slowListing', host: this.host, repository });
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #list(repository: string, revision: string, signal: AbortSignal): Promise<Listing> {
    const place = { repository };
    const about = this.#url('api/models', repository, 'revision', encodeURIComponent(revision));
    const commit = ((await this.#json(about, place, signal)).value as { sha?: unknown } | null)?.sha;
    if (typeof commit !== 'string' || !/^[0-9a-f]{40}$/.test(commit)) throw this.#bad('noCommit');
    const files: HubFile[] = [];
    let entries = 0;
    let url: string | undefined = `${this.#url('api/models', repository, 'tree', commit)}?recursive=true`;
    for (let page = 0; url !== undefined; page++) {
      if (page === MAX_PAGES) throw this.#bad('tooManyFiles');
      const { value, next } = await this.#json(url, place, signal);
      if (!Array.isArray(value)) throw this.#bad('noList');
      entries += value.length;
      if (entries > MAX_FILES) throw this.#bad('tooManyFiles');
      for (const entry of value as unknown[]) {
        const file = fileOf(entry);
        if (file) files.push(file);
        else if (isNeeded(entry)) throw this.#bad('badEntry');
      }
      url = next;
    }
    return { repository, commit, files };
  }

  /**
   * The bytes of a file from `from` on: status 200, 206 or 416. `resolve` is asked each time, because the addresses that
   * it redirects to expire. `etag`: what the answer with the first part had; the rest is sent only if it is the same.
   * @throws DownloadError
   */
  async open(
    { repository, commit }: { repository: string; commit: string },
    file: HubFile,
    from: number,
    etag: string | undefined,
    signal: AbortSignal,
  ): Promise<Response> {
    const url = this.#url(repository, 'resolve', commit, file.path.split('/').map(encodeURIComponent).join('/'));
    const range = { range: `bytes=${from}-`, ...(etag ? { 'if-range': etag } : {}) };
    return this.#get(url, { repository, file: file.path }, { ...(from > 0 ? range : {}) }, signal, [416]);
  }

  async #json(url: string, place: Place, signal: AbortSignal): Promise<{ value: unknown; next: string | undefined }> {
    const response = await this.#get(url, place, { accept: 'application/json' }, signal);
    const text = await textOf(response.body, MAX_PAGE_BYTES, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      throw new DownloadError({ kind: 'unreachable', host: this.host, reason: networkReason(error) });
    });
    if (text === undefined) throw this.#bad('tooLong');
    const [, link] = /<([^>]*)>\s*;\s*rel="?next"?/.exec(response.headers.get('link') ?? '') ?? [];
    if (link !== undefined && !URL.canParse(link, url)) throw this.#bad('badAddress');
    // The next page of a mirror may be named by an address of the hub itself. Only its query is new.
    const next = link === undefined ? undefined : `${url.split('?')[0]}${new URL(link, url).search}`;
    try {
      return { value: JSON.parse(text) as unknown, next };
    } catch {
      throw this.#bad('noJson');
    }
  }

  /** Follows redirects by itself, so that no other origin gets the token. */
  async #get(
    url: string,
    place: Place,
    headers: Record<string, string>,
    signal: AbortSignal,
    alsoFine: readonly number[] = [],
  ): Promise<Response> {
    let at = new URL(url);
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const isHub = at.origin === this.endpoint.origin;
      const response = await this.#send(at, { ...headers, ...(isHub ? this.#authorization() : {}) }, signal);
      if (response.ok || alsoFine.includes(response.status)) return response;
      const location = response.headers.get('location');
      if (response.status >= 300 && response.status < 400 && location !== null) {
        await response.body?.cancel();
        if (!URL.canParse(location, at)) throw this.#bad('badAddress');
        at = new URL(location, at);
        if (!isPlain(at)) throw this.#bad('badAddress');
        if (this.endpoint.protocol === 'https:' && at.protocol === 'http:') throw this.#bad('unencrypted');
        continue;
      }
      await response.body?.cancel();
      throw this.#refusal(response, at, place, isHub);
    }
    throw this.#bad('tooManyRedirects');
  }

  async #send(url: URL, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const silence = new AbortController();
    const timer = setTimeout(() => silence.abort(), MAX_SILENCE_MS);
    const ends = either(signal, silence.signal);
    try {
      const answer = this.#fetch(url.href, {
        // Ranges count the bytes of the file itself.
        headers: { 'accept-encoding': 'identity', ...headers },
        redirect: 'manual',
        cache: 'no-store',
        signal: ends,
      });
      return await unlessAborted(answer, ends);
    } catch (error) {
      signal.throwIfAborted();
      throw new DownloadError({
        kind: 'unreachable',
        host: url.host,
        reason: silence.signal.aborted ? 'ETIMEDOUT' : networkReason(error),
      });
    } finally {
      clearTimeout(timer);
    }
  }

  #refusal(response: Response, at: URL, { repository, file }: Place, isHub: boolean): DownloadError {
    const { status } = response;
    const code = response.headers.get('x-error-code') ?? '';
    // An address that the hub has signed expires; the next one may work.
    if (status === 429 || status >= 500 || (!isHub && (status === 403 || status === 401)))
      return new DownloadError({ kind: 'busy', host: at.host, status });
    const hasToken = this.#token !== '';
    // The hub answers 401 for a repository that does not exist, unless there is a token.
    if (code === 'RepoNotFound' && (status === 404 || hasToken))
      return new DownloadError({ kind: 'notFound', repository, host: at.host });
    if (status === 401 || status === 403)
      return new DownloadError({ kind: 'gated', repository, host: at.host, hasToken });
    if (status !== 404) return new DownloadError({ kind: 'status', host: at.host, status });
    return file === undefined
      ? new DownloadError({ kind: 'notFound', repository, host: at.host })
      : new DownloadError({ kind: 'fileNotFound', file, repository });
  }

  #authorization(): Record<string, string> {
    if (!this.#token) return {};
    if (!/^[\x21-\x7e]+$/.test(this.#token)) throw new DownloadError({ kind: 'badToken' });
    if (this.endpoint.protocol === 'http:' && !isLoopback(this.endpoint))
      throw new DownloadError({ kind: 'openToken', host: this.host });
    return { authorization: `Bearer ${this.#token}` };
  }

  #url(...parts: string[]): string {
    return [this.endpoint.href.replace(/\/+$/, ''), ...parts].join('/');
  }

  #bad(reason: BadAnswer): DownloadError {
    return new DownloadError({ kind: 'badListing', host: this.host, reason });
  }
}

/** "owner/name" */
function isRepository(name: string): boolean {
  return (
    /^[\w.-]{1,96}\/[\w.-]{1,96}$/.test(name) && !name.split('/').some((part) => /^\.+$|--|\.\.|\.git$/.test(part))
  );
}

function endpointOf(endpoint: string): URL {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : null;
  if (!url || !isPlain(url) || url.search || url.hash) throw new DownloadError({ kind: 'badEndpoint' });
  return url;
}

/** Of the web, and without a user. */
const isPlain = ({ protocol, username, password }: URL): boolean =>
  /^https?:$/.test(protocol) && username === '' && password === '';

const isLoopback = ({ hostname }: URL): boolean => /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);

/** The code of a network error; empty without one. Its message may have addresses and headers, and so secrets. */
function networkReason(error: unknown): string {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  const found = cause?.code ?? code;
  return typeof found === 'string' && /^\w{1,64}$/.test(found) ? found : '';
}
