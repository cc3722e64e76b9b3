/**
 * Entry of the engine's thread: messages in, messages out. Owns nothing but the port and the last line of defence; all
 * behaviour is in Assistant.
 */
import { parentPort } from 'node:worker_threads';
import { Assistant } from './assistant.ts';
import type { EngineMessage, HostMessage } from './protocol.ts';

if (!parentPort) throw new Error('worker.ts is the entry of a worker thread; the command line is cli.ts');
const port = parentPort;
const assistant = new Assistant((message: EngineMessage) => port.postMessage(message));
port.on('message', (message: HostMessage) => {
  assistant.handle(message);
  // The reply to `shutdown` is posted before the port closes; with the port closed nothing keeps the thread alive.
  if (message.type === 'shutdown') assistant.closed.then(() => port.close());
});
// A bug outside a step must not take the editor's process down: pending requests are told, then the engine is rebuilt.
process.on('uncaughtException', (error) => assistant.fail(error));
process.on('unhandledRejection', (reason) => assistant.fail(reason));
