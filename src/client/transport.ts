/**
 * How messages travel between the editor and the engine: to a worker thread (threadTransport.ts) or to a process of its own
 * (processTransport.ts). Knows nothing of requests: connection.ts does.
 */
import type { EngineMessage, HostMessage } from '../../engine/protocol.ts';

/**
 * MB of the engine's heap for what has just been made. Left to itself V8 lets it grow: beside an answer of the chat and a completion at
 * every other key the extension host then held 366 MB, and with this bound 300, as fast.
 */
export const MOST_YOUNG_MB = 8;

export interface Transport {
  /** Never throws; a message to a channel that has closed is lost, and `onExit` has said so or will. */
  send(message: HostMessage): void;
  onMessage(listener: (message: EngineMessage) => void): void;
  /** Called at most once, when the channel closes without `dispose`; the reason is shown to the user. */
  onExit(listener: (reason: string) => void): void;
  /**
   * Ends the channel and with it the engine. `acknowledged` says that the engine has answered `shutdown`, so that nothing is
   * being computed. Without it the engine may be inside native code, which must not be torn down in the editor's own process:
   * a thread is then left to end by itself.
   */
  dispose(acknowledged: boolean): void;
}
