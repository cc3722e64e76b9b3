/**
 * Runs a driver's process: starts it, sends one command at a time, stops it while others are measured so that its
 * threads do not spin, and ends it with the runner in all cases. Writes the library's output to a log file.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { openSync, readFileSync, writeFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { createInterface, type Interface } from 'node:readline';
import type { Command, Generated, GenerateRequest, Opened, OpenOptions, Reply } from './protocol.ts';

export class DriverProcess {
  readonly #child: ChildProcess;
  readonly #replies: AsyncIterator<string>;
  readonly #lines: Interface;
  readonly #log: string;
  readonly #what: string;
  readonly #killed = (): boolean => this.#child.kill('SIGKILL');

  /**
   * @param what names the process in messages.
   * @param command program and arguments.
   */
  constructor(what: string, command: readonly string[], log: string) {
    this.#what = what;
    this.#log = log;
    writeFileSync(log, '');
    const output = openSync(log, 'a');
    this.#child = spawn(command[0]!, command.slice(1), { stdio: ['pipe', output, output, 'pipe'] });
    this.#child.on('error', (error) => writeFileSync(log, `${command[0]}: ${error.message}\n`, { flag: 'a' }));
    // The end of the replies reports the death of the process.
    this.#child.stdin!.on('error', () => {});
    this.#lines = createInterface({ input: this.#child.stdio[3] as Readable });
    this.#replies = this.#lines[Symbol.asyncIterator]();
    process.once('exit', this.#killed);
  }

  async open(options: OpenOptions): Promise<Opened> {
    const reply = await this.#ask({ op: 'open', options });
    if (!('opened' in reply)) throw this.#failure(`answered "open" by ${JSON.stringify(reply)}`);
    return reply.opened;
  }

  async generate(request: GenerateRequest): Promise<Generated[]> {
    const reply = await this.#ask({ op: 'generate', request });
    if (!('generated' in reply)) throw this.#failure(`answered "generate" by ${JSON.stringify(reply)}`);
    for (const { tokenIds, atMs } of reply.generated) {
      if (tokenIds.length !== request.tokens || atMs.length !== tokenIds.length)
        throw this.#failure(
          `generated ${tokenIds.length} tokens with ${atMs.length} times where ${request.tokens} were asked for`,
        );
    }
    return reply.generated;
  }

  /** Stops the process until `thaw`. Does nothing on Windows, where processes cannot be stopped. */
  freeze(): void {
    if (process.platform !== 'win32') this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    if (process.platform !== 'win32') this.#child.kill('SIGCONT');
  }

  async close(): Promise<void> {
    this.thaw();
    await this.#ask({ op: 'close' }).finally(() => this.kill());
  }

  kill(): void {
    this.#killed();
    this.#lines.close();
    process.removeListener('exit', this.#killed);
  }

  async #ask(command: Command): Promise<Reply> {
    this.#child.stdin!.write(`${JSON.stringify(command)}\n`);
    const { value, done } = await this.#replies.next();
    if (done) throw this.#failure('ended');
    const reply = JSON.parse(value) as Reply;
    if ('error' in reply) throw this.#failure(`failed: ${reply.error}`);
    return reply;
  }

  #failure(what: string): Error {
    const last = readFileSync(this.#log, 'utf8').trimEnd().split('\n').slice(-5).join('\n');
    return new Error(`${this.#what} ${what}; the last lines of ${this.#log}:\n${last}`);
  }
}
