/** Entry point of the engine's worker thread: passes messages to AssistantServer and handles uncaught errors. */
import { parentPort } from 'node:worker_threads';
import { AssistantServer } from './assistantServer.ts';
import type { EngineMessage, HostMessage } from '../protocol/messages.ts';

if (!parentPort) throw new Error('worker.ts is the entry point of a worker thread; the command line is cli.ts');
const port = parentPort;
const assistant = new AssistantServer((message: EngineMessage) => port.postMessage(message));
port.on('message', (message: HostMessage) => {
  assistant.handle(message);
  // The reply to `shutdown` is posted before the port closes. A closed port lets the thread end.
  if (message.type === 'shutdown') assistant.closed.then(() => port.close());
});
// A bug outside a step must not crash the editor's process: pending requests fail, then the engine is rebuilt.
process.on('uncaughtException', (error) => assistant.fail(error));
process.on('unhandledRejection', (reason) => assistant.fail(reason));
