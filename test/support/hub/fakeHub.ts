/**
 * A Hugging Face hub on the loopback: listings, `resolve` with a redirect to a second port as the CDN, parts, ETags,
 * gated repositories, and faults on demand. Serves whatever files it is given.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const COMMIT = '0123456789abcdef0123456789abcdef01234567';
const PIECE = 64 * 1024;

export interface Seen {
  server: 'hub' | 'cdn';
  url: string;
  range: string | undefined;
  ifRange: string | undefined;
  authorization: string | undefined;
  /** Bytes of the body that were sent. */
  sent: number;
}

export interface Faults {
  /** The next answers with a body from the CDN end after so many bytes. */
  cutAfter: number[];
  /** Flips a bit of this byte of every large file. */
  flipByte: number | null;
  /** The CDN has other bytes under the same name from now on, with another ETag. */
  changed: boolean;
  /** Parts are answered with the whole file. */
  ignoresRanges: boolean;
  /** Parts are answered with 416. */
  refusesRanges: boolean;
  /** Parts begin at another place than asked for. */
  shiftsRanges: boolean;
  /** The CDN answers the next requests with these. */
  statuses: number[];
  /** Everybody else gets 401. */
  token: string | null;
  /** Accounts with the token are refused with 403, too. */
  refusesToken: boolean;
  /** Sizes that the listing shows instead of the true ones. */
  claimedSize: number | null;
  /** Time between two pieces of a body. */
  delayMs: number;
  /** Signed addresses are good for one request. */
  signsOnce: boolean;
  /** Files of one page of a listing. */
  pageSize: number;
  /** The body of each page of a listing, instead of the true one. */
  listing: string | null;
  /** Each page of a listing names this next one. */
  link: string | null;
  /** The hub redirects each request to this place. */
  location: string | null;
}

export class FakeHub {
  readonly seen: Seen[] = [];
  readonly faults: Faults = {
    cutAfter: [],
    flipByte: null,
    changed: false,
    ignoresRanges: false,
    refusesRanges: false,
    shiftsRanges: false,
    statuses: [],
    token: null,
    refusesToken: false,
    claimedSize: null,
    delayMs: 0,
    signsOnce: false,
    pageSize: 1000,
    listing: null,
    link: null,
    location: null,
  };
  commit = COMMIT;
  readonly #repositories: Record<string, Record<string, Buffer>>;
  readonly #path: string;
  readonly #hub: Server;
  readonly #cdn: Server;
  readonly #signed = new Map<string, Buffer>();

  /** @param path of the endpoint, as a mirror may have: "/mirror/hf" */
  constructor(repositories: Record<string, Record<string, Buffer>>, path = '') {
    this.#repositories = repositories;
    this.#path = path;
    this.#hub = createServer((request, response) => this.#answer(request, response));
    this.#cdn = createServer((request, response) => this.#serve(request, response));
  }

  async start(port = 0): Promise<this> {
    for (const [server, at] of [
      [this.#hub, port],
      [this.#cdn, 0],
    ] as const)
      await new Promise<void>((resolve) => server.listen(at, '127.0.0.1', resolve));
    return this;
  }

  async stop(): Promise<void> {
    for (const server of [this.#hub, this.#cdn]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  get endpoint(): string {
    return `http://127.0.0.1:${portOf(this.#hub)}${this.#path}`;
  }

  /** Ends what the CDN is sending. */
  cut(): void {
    this.#cdn.closeAllConnections();
  }

  /** What the CDN was asked for. */
  get loads(): Seen[] {
    return this.seen.filter(({ server }) => server === 'cdn');
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const seen = this.#see('hub', request);
    const url = new URL(request.url ?? '', 'http://hub');
    if (this.faults.location !== null) return end(response, 302, { location: this.faults.location });
    if (!url.pathname.startsWith(`${this.#path}/`)) return end(response, 404);
    const path = url.pathname.slice(this.#path.length);
    const listing = /^\/api\/models\/([^/]+\/[^/]+)\/(revision|tree)\/([^/]+)$/.exec(path);
    const resolving = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path);
    const files = this.#repositories[(listing ?? resolving)?.[1] ?? ''];
    if (!files) return end(response, 404, { 'x-error-code': 'RepoNotFound' });
    const { token, refusesToken } = this.faults;
    if (token !== null && (seen.authorization !== `Bearer ${token}` || refusesToken))
      return end(response, refusesToken ? 403 : 401, { 'x-error-code': 'GatedRepo' });
    if (listing?.[2] === 'revision') return json(response, { sha: this.commit });
    if (listing) return this.#list(files, url, response);
    if (resolving?.[2] !== this.commit) return end(response, 404, { 'x-error-code': 'RevisionNotFound' });
    const name = decodeURIComponent(resolving[3]!);
    const bytes = files[name];
    if (!bytes) return end(response, 404, { 'x-error-code': 'EntryNotFound' });
    if (!isLarge(name)) return void this.#send(request, response, seen, bytes, `"${gitHash(bytes)}"`);
    const id = `/${this.#signed.size}/${encodeURIComponent(name)}`;
    this.#signed.set(id, bytes);
    end(response, 302, { location: `http://127.0.0.1:${portOf(this.#cdn)}${id}?signature=x` });
  }

  #list(files: Record<string, Buffer>, url: URL, response: ServerResponse): void {
    const { pageSize, claimedSize, listing, link: next } = this.faults;
    if (listing !== null || next !== null)
      return void response.writeHead(200, next === null ? {} : { link: next }).end(listing ?? '[]');
    const from = Number(url.searchParams.get('cursor') ?? 0);
    const entries = Object.entries(files).map(([path, bytes]) => {
      const size = claimedSize ?? bytes.length;
      const lfs = { oid: sha256(bytes), size, pointerSize: 134 };
      return { type: 'file', path, size, oid: gitHash(bytes), ...(isLarge(path) ? { lfs } : {}) };
    });
    const folders = [{ type: 'directory', path: 'onnx', size: 0, oid: gitHash(Buffer.from('')) }];
    url.searchParams.set('cursor', String(from + pageSize));
    const more = from + pageSize < entries.length;
    const link = { link: `<http://127.0.0.1:${portOf(this.#hub)}${url.pathname}${url.search}>; rel="next"` };
    json(response, [...folders, ...entries.slice(from, from + pageSize)], more ? link : {});
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const seen = this.#see('cdn', request);
    const id = (request.url ?? '').split('?')[0]!;
    const bytes = this.#signed.get(id);
    const status = this.faults.statuses.shift();
    if (status !== undefined) return end(response, status);
    if (!bytes) return end(response, 403);
    if (this.faults.signsOnce) this.#signed.set(id, undefined as never);
    const { changed, flipByte } = this.faults;
    const own = Buffer.from(bytes);
    if (changed) own.reverse();
    if (flipByte !== null) own[flipByte]! ^= 1;
    void this.#send(request, response, seen, own, `"cdn-${sha256(changed ? own : bytes).slice(0, 8)}"`);
  }

  async #send(
    request: IncomingMessage,
    response: ServerResponse,
    seen: Seen,
    bytes: Buffer,
    etag: string,
  ): Promise<void> {
    const { ignoresRanges, refusesRanges, shiftsRanges } = this.faults;
    const asked = /^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1];
    const isSame = request.headers['if-range'] === undefined || request.headers['if-range'] === etag;
    const isPart = asked !== undefined && isSame && !ignoresRanges;
    const from = isPart ? Number(asked) - (shiftsRanges ? 1 : 0) : 0;
    if (isPart && (refusesRanges || from >= bytes.length)) return end(response, 416);
    const body = bytes.subarray(from);
    response.writeHead(isPart ? 206 : 200, {
      etag,
      'content-length': String(body.length),
      ...(isPart ? { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` } : {}),
    });
    const cut = seen.server === 'cdn' ? this.faults.cutAfter.shift() : undefined;
    for (let at = 0; at < body.length && !response.destroyed; at += PIECE) {
      const end = Math.min(at + PIECE, body.length, cut ?? Number.POSITIVE_INFINITY);
      await new Promise<void>((resolve) => response.write(body.subarray(at, end), () => resolve()));
      seen.sent += Math.max(0, end - at);
      if (end === cut) {
        // What was written arrives before the end of the connection. `destroy` may drop it.
        response.socket?.end();
        return;
      }
      // A change of the delay ends or prolongs the pause that runs.
      for (const since = performance.now(); performance.now() - since < this.faults.delayMs && !response.destroyed; )
        await new Promise((resolve) => setTimeout(resolve, 5));
    }
    response.end();
  }

  #see(server: Seen['server'], { url = '', headers }: IncomingMessage): Seen {
    const seen: Seen = {
      server,
      url,
      range: headers.range,
      ifRange: headers['if-range'] as string | undefined,
      authorization: headers.authorization,
      sent: 0,
    };
    this.seen.push(seen);
    return seen;
  }
}

const isLarge = (name: string): boolean => /\.(gguf|safetensors)$/.test(name);
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const gitHash = (bytes: Buffer): string =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
const portOf = (server: Server): number => (server.address() as AddressInfo).port;

function end(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  response.writeHead(status, headers).end();
}

function json(response: ServerResponse, value: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
}

/** Bytes that differ everywhere, so that a piece at the wrong place shows. */
export function unlike(length: number, seed: number): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed | 1;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}
