/**
 * How messages travel between the editor and the engine (threadTransport.ts; tests have their own). Does not know
 * requests: connection.ts does.
 */
import type { EngineMessage, HostMessage } from '../../engine/protocol/messages.ts';

/**
 * Limit of the engine's young heap generation, in MB. V8's own choice grows larger: during a chat answer with a
 * completion at every other key, the extension host held 366 MB without this limit and 300 MB with it, at the same
 * speed.
 */
export const MAX_YOUNG_MB = 8;

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
