/**
 * Entry of the engine, in a thread or in a process of its own: messages in, messages out. Owns nothing but the channel and
 * the last line of defence; all behaviour is in AssistantServer.
 */
import { parentPort } from 'node:worker_threads';
import { AssistantServer } from './assistantServer.ts';
import type { EngineMessage, HostMessage } from '../protocol/messages.ts';

interface Channel {
  send(message: EngineMessage): void;
  onMessage(listener: (message: HostMessage) => void): void;
  /** With the channel closed nothing keeps the thread or process alive. */
  close(): void;
}

function openChannel(): Channel {
  if (parentPort) {
    const port = parentPort;
    return {
      send: (message) => port.postMessage(message),
      onMessage: (listener) => port.on('message', listener),
      close: () => port.close(),
    };
  }
  if (!process.send)
    throw new Error('worker.ts is the entry of a worker thread or a forked process; the command line is cli.ts');
  process.title = 'kvasir-engine';
  // The editor has gone, perhaps by a crash, and nobody wants what is being computed. A regular exit would tear the native
  // library down under the threads that it computes with.
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  return {
    send: (message) => process.send?.(message, undefined, undefined, () => {}),
    onMessage: (listener) => process.on('message', listener),
    // The editor ends the process when it has read the reply.
    close: () => {},
  };
}

const channel = openChannel();
const assistant = new AssistantServer((message) => channel.send(message));
channel.onMessage((message) => {
  assistant.handle(message);
  // The reply to `shutdown` is posted before the channel closes.
  if (message.type === 'shutdown') assistant.closed.then(() => channel.close());
});
// A bug outside a step must not take the editor's process down: pending requests are told, then the engine is rebuilt.
process.on('uncaughtException', (error) => assistant.fail(error));
process.on('unhandledRejection', (reason) => assistant.fail(reason));
