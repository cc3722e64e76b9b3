/** Entry of the worker thread of the engine. Passes messages on. Does not handle them (see assistantServer.ts). */
import { parentPort } from 'node:worker_threads';
import type { HostMessage } from '../protocol/messages.ts';
import { AssistantServer } from './assistantServer.ts';

if (!parentPort) throw new Error('worker.ts is the entry of a worker thread; the command line is dist/cli.js');
const port = parentPort;
const assistant = new AssistantServer((message) => port.postMessage(message));
port.on('message', (message: HostMessage) => {
  assistant.handle(message);
  // Closed after the reply to `shutdown` is posted. Nothing keeps the thread alive then.
  if (message.type === 'shutdown') assistant.closed.then(() => port.close());
});
// A bug outside a step must not end the process of the editor. Requests get an error, and the engine is rebuilt.
process.on('uncaughtException', (error) => assistant.fail(error));
process.on('unhandledRejection', (reason) => assistant.fail(reason));
