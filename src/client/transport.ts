/**
 * Carries messages between the editor and the engine, which runs in a worker thread of the extension host. Does not
 * know requests: connection.ts does.
 */
import { SHARE_ENV, Worker } from 'node:worker_threads';
import type { EngineMessage, HostMessage } from '../../engine/protocol/messages.ts';
import type { Translate } from '../format.ts';

/**
 * Limit of the engine's young heap generation, in MB. V8's own choice grows larger: during a chat answer with a
 * completion at every other key, the extension host held 366 MB without this limit and 300 MB with it, at the same
 * speed.
 */
export const MAX_YOUNG_MB = 8;

/** A channel to the engine. Tests have their own. */
export interface Transport {
  /** Never throws. A message to a closed channel is lost; `onExit` reports the closing. */
  send(message: HostMessage): void;
  onMessage(listener: (message: EngineMessage) => void): void;
  /** Called at most once, when the channel closes without `dispose`. The reason is shown to the user. */
  onExit(listener: (reason: string) => void): void;
  /**
   * Closes the channel and ends the engine. `acknowledged`: the engine has answered `shutdown`, so nothing is being
   * computed. Otherwise the engine may be inside native code, which must not be torn down in the editor's process; the
   * thread is then left to end by itself.
   */
  dispose(acknowledged: boolean): void;
}

/** The engine in a worker thread, which exists from construction to `dispose`. */
export class ThreadTransport implements Transport {
  readonly #worker: Worker;
  readonly #t: Translate;
  #disposed = false;

  /** `onOutput` receives what the engine and its libraries print. */
  constructor(script: string, t: Translate, onOutput: (text: string) => void) {
    this.#t = t;
    // The thread shares the process's environment, because native libraries read it: the engine switches off
    // onnxruntime's telemetry by a variable. It does not get the extension host's own flags, such as --inspect-port.
    this.#worker = new Worker(script, {
      name: 'kvasir-engine',
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: MAX_YOUNG_MB },
      env: SHARE_ENV,
      stdout: true,
      stderr: true,
    });
    this.#worker.stdout.setEncoding('utf8').on('data', onOutput);
    this.#worker.stderr.setEncoding('utf8').on('data', onOutput);
  }

  send(message: HostMessage): void {
    this.#worker.postMessage(message);
  }

  onMessage(listener: (message: EngineMessage) => void): void {
    this.#worker.on('message', (message: EngineMessage) => {
      if (!this.#disposed) listener(message);
    });
  }

  onExit(listener: (reason: string) => void): void {
    let reason: string | undefined;
    this.#worker.on('error', (error) => {
      reason = error.message;
    });
    this.#worker.on('exit', (code) => {
      if (!this.#disposed) listener(reason ?? this.#t('its thread ended with code {0}', code));
    });
  }

  dispose(acknowledged: boolean): void {
    this.#disposed = true;
    if (acknowledged) {
      void this.#worker.terminate();
      return;
    }
    // The thread closes its port when it reaches the `shutdown` message. Until then it must not keep the process alive.
    this.#worker.unref();
  }
}
