/**
 * The client of the command line: an AssistantServer in the same thread, with a promise per request. Sends the same
 * messages as the editor, so both get the same answers. Prints nothing but log lines.
 */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { AssistantServer } from '../server/assistantServer.ts';
import { RequestError } from '../protocol/errors.ts';
import { leadsToSecret, readTextFile } from './cliFiles.ts';
import type { EngineMessage, HostMessage, LoadOptions, ReplyValue } from '../protocol/messages.ts';
import type { EngineStats, ModelInfo } from '../protocol/stats.ts';
import type { Priority, SamplingParams, Task } from '../protocol/tasks.ts';

export type Chunk = Extract<EngineMessage, { type: 'chunk' }>;
export type Done = Extract<EngineMessage, { type: 'done' }>;

interface Pending {
  onChunk?: ((chunk: Chunk) => void) | undefined;
  onProgress?: ((stage: 'import' | 'session', fraction: number) => void) | undefined;
  onParts?: GenerateOptions['onParts'];
  resolve: (value: never) => void;
  reject: (error: RequestError) => void;
}

export interface GenerateOptions {
  id?: string;
  sampling?: SamplingParams;
  priority?: Priority;
  onChunk?: (chunk: Chunk) => void;
  /** Gets the progress of a request with several sequences. */
  onParts?: ((numDone: number, numTotal: number) => void) | undefined;
}

/** $XDG_CACHE_HOME/kvasir, or a folder in the cache folder of the system. */
export function defaultCacheDir(
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
): string {
  if (env.XDG_CACHE_HOME) return join(env.XDG_CACHE_HOME, 'kvasir');
  if (platform === 'darwin') return join(homedir(), 'Library', 'Caches', 'kvasir');
  if (platform === 'win32' && env.LOCALAPPDATA) return join(env.LOCALAPPDATA, 'kvasir', 'cache');
  return join(homedir(), '.cache', 'kvasir');
}

const PRIORITY: Record<Task['kind'], Priority> = {
  raw: 'completion',
  complete: 'completion',
  chat: 'chat',
  summarize: 'summary',
  summarizeFolder: 'summary',
  edit: 'chat',
  commitMessage: 'chat',
};

export class Client {
  #pending = new Map<string, Pending>();
  #numRequests = 0;
  #assistant = new AssistantServer((message) => this.#receive(message));

  load(options: LoadOptions, onProgress?: Pending['onProgress']): Promise<ModelInfo> {
    return this.#ask((requestId) => ({ type: 'load', requestId, ...options }), { onProgress }).then((value) => {
      if (value.kind !== 'loaded') throw new Error(`load was answered by "${value.kind}"`);
      return value.model;
    });
  }

  /** Opens a file in the engine. @throws FileError */
  async openFile(path: string): Promise<{ docId: string; text: string }> {
    const text = await readTextFile(path);
    const full = resolve(path);
    this.send({
      type: 'documentChanged',
      docId: full,
      version: 1,
      path: full,
      text,
      secret: await leadsToSecret(full),
    });
    return { docId: full, text };
  }

  generate(task: Task, options: GenerateOptions = {}): Promise<Done> {
    const requestId = options.id ?? `r${++this.#numRequests}`;
    if (this.#pending.has(requestId))
      return Promise.reject(new RequestError('badRequest', `request id "${requestId}" is used twice`));
    return new Promise<Done>((resolve, reject) => {
      this.#pending.set(requestId, { onChunk: options.onChunk, onParts: options.onParts, resolve, reject });
      this.send({
        type: 'generate',
        requestId,
        task,
        priority: options.priority ?? PRIORITY[task.kind],
        ...(options.sampling ? { sampling: options.sampling } : {}),
      });
    });
  }

  abort(requestId: string): void {
    this.send({ type: 'abort', requestId });
  }

  async stats(): Promise<EngineStats> {
    const value = await this.#ask((requestId) => ({ type: 'stats', requestId }));
    if (value.kind !== 'stats') throw new Error(`stats was answered by "${value.kind}"`);
    return value.stats;
  }

  /** The last steps of the engine as JSON in the Chrome trace format. */
  async trace(): Promise<string> {
    const value = await this.#ask((requestId) => ({ type: 'trace', requestId }));
    if (value.kind !== 'trace') throw new Error(`trace was answered by "${value.kind}"`);
    return value.json;
  }

  /** Resolves when no request is left and idle prefill has ended. */
  async flush(): Promise<void> {
    await this.#ask((requestId) => ({ type: 'flush', requestId }));
  }

  async close(): Promise<void> {
    await this.#ask((requestId) => ({ type: 'shutdown', requestId }));
  }

  send(message: HostMessage): void {
    this.#assistant.handle(message);
  }

  #ask(message: (requestId: string) => HostMessage, more: Pick<Pending, 'onProgress'> = {}): Promise<ReplyValue> {
    const requestId = `ask${++this.#numRequests}`;
    return new Promise<ReplyValue>((resolve, reject) => {
      this.#pending.set(requestId, { ...more, resolve, reject });
      this.send(message(requestId));
    });
  }

  #receive(message: EngineMessage): void {
    if (message.type === 'log') return void process.stderr.write(`kvasir: ${message.message}\n`);
    if (message.type === 'ready' || message.requestId === undefined) return;
    const pending = this.#pending.get(message.requestId);
    if (!pending) return;
    if (message.type === 'chunk') return pending.onChunk?.(message);
    if (message.type === 'loadProgress') return pending.onProgress?.(message.stage, message.fraction);
    if (message.type === 'progress') return pending.onParts?.(message.numDone, message.numTotal);
    this.#pending.delete(message.requestId);
    if (message.type === 'error') pending.reject(new RequestError(message.code, message.message));
    else pending.resolve((message.type === 'reply' ? message.value : message) as never);
  }
}
