/**
 * The engine's end of a transport, controlled by a test. It mirrors the documents as the real engine does, keeps every
 * generate with the text of its document, and sends what the test specifies.
 */
import { Documents } from '../../../engine/server/documents.ts';
import {
  type EngineMessage,
  type HostMessage,
  type LoadOptions,
  PROTOCOL_VERSION,
} from '../../../engine/protocol/messages.ts';
import type { MachineInfo, ModelInfo } from '../../../engine/protocol/stats.ts';
import type { ErrorCode, Task } from '../../../engine/protocol/tasks.ts';
import { EngineClient } from '../../../src/client/engineClient.ts';
import type { Transport } from '../../../src/client/transport.ts';
import { t } from './translate.ts';

type Complete = Extract<Task, { kind: 'complete' }>;

export class ScriptedRequest {
  readonly #say: (message: EngineMessage) => void;
  readonly message: Extract<HostMessage, { type: 'generate' }>;
  readonly task: Complete;
  /** Text of the document in the engine when the request arrived. */
  readonly text: string;
  written = '';
  ended = false;
  aborted = false;

  constructor(
    message: Extract<HostMessage, { type: 'generate' }>,
    text: string,
    say: (message: EngineMessage) => void,
  ) {
    this.message = message;
    this.task = message.task as Complete;
    this.text = text;
    this.#say = say;
  }

  chunk(text: string): void {
    this.written += text;
    this.#say({ type: 'chunk', requestId: this.message.requestId, text, tokenIds: [1], logprobs: [0] });
  }

  /** Ends the request with the text written so far and `rest`. */
  done(rest = '', finishReason: 'stop' | 'abort' = 'stop', suppressed = false): void {
    if (this.ended) return;
    if (rest) this.chunk(rest);
    this.ended = true;
    this.#say({
      type: 'done',
      requestId: this.message.requestId,
      finishReason,
      text: this.written,
      tokenIds: [],
      logprobs: [],
      diagnostics: [],
      usage: { promptTokens: 40, cachedTokens: 30, completionTokens: 1, blockTokens: 20 },
      timings: { queueMs: 0, ttftMs: 1, tpotMs: 1 },
      ...(suppressed ? { suppressed } : {}),
    });
  }

  fail(message: string, code: ErrorCode = 'outOfMemory'): void {
    if (this.ended) return;
    this.ended = true;
    this.#say({ type: 'error', requestId: this.message.requestId, code, message });
  }

  abort(): void {
    this.aborted = true;
    this.done('', 'abort');
  }
}

export class ScriptedEngine implements Transport {
  readonly sent: HostMessage[] = [];
  readonly requests: ScriptedRequest[] = [];
  readonly documents = new Documents();
  machine = { onBattery: null } as MachineInfo;
  model = {
    name: 'scripted',
    precision: 'int8',
    contextTokens: 2048,
    loadMs: 1,
    imported: false,
    parameters: 7.5e6,
    canComplete: true,
    readsSnippets: false,
    copiesFiles: false,
    chatNote: { en: '', pt: '' },
  } as ModelInfo;
  /** Delay of the answer about the machine. */
  machineMs = 0;
  /** Delay of loading the model. */
  loadMs = 0;
  /** Called with each generate. */
  onRequest: (request: ScriptedRequest) => void = () => {};
  #listener: (message: EngineMessage) => void = () => {};

  /** Requests that have not ended. */
  get running(): ScriptedRequest[] {
    return this.requests.filter(({ ended }) => !ended);
  }

  send(message: HostMessage): void {
    this.sent.push(message);
    const reply = (value: Extract<EngineMessage, { type: 'reply' }>['value']) =>
      'requestId' in message &&
      queueMicrotask(() => this.#listener({ type: 'reply', requestId: message.requestId, value }));
    if (message.type === 'load') {
      const loaded = () => reply({ kind: 'loaded', model: this.model });
      if (this.loadMs) setTimeout(loaded, this.loadMs);
      else loaded();
    } else if (message.type === 'shutdown') reply({ kind: 'ok' });
    else if (message.type === 'machine') {
      const told = () => reply({ kind: 'machine', machine: this.machine });
      if (this.machineMs) setTimeout(told, this.machineMs);
      else told();
    } else if (message.type === 'documentChanged') {
      if ('text' in message) this.documents.open(message.docId, message.version, message.path, message.text);
      else this.documents.edit(message.docId, message.version, message.edits);
    } else if (message.type === 'abort') {
      this.requests.find((request) => request.message.requestId === message.requestId)?.abort();
    } else if (message.type === 'generate') {
      const task = message.task as Complete;
      const request = new ScriptedRequest(message, this.documents.get(task.docId).text, (answer) =>
        queueMicrotask(() => this.#listener(answer)),
      );
      this.requests.push(request);
      this.onRequest(request);
    }
  }

  onMessage(listener: (message: EngineMessage) => void): void {
    this.#listener = listener;
    queueMicrotask(() => listener({ type: 'ready', version: PROTOCOL_VERSION }));
  }

  onExit(): void {}

  dispose(): void {}

  client(): EngineClient {
    return new EngineClient({
      createTransport: () => this,
      loadOptions: () =>
        ({ modelDir: '/model', cacheDir: '/cache', precision: 'int8', maxBytes: 0, threads: 0 }) satisfies LoadOptions,
      onState: () => {},
      onActivity: () => {},
      log: () => {},
      t,
    });
  }
}
