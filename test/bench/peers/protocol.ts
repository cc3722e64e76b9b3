/**
 * Defines the messages between the runner and a driver process: one command per line on standard input, one reply per
 * line on file descriptor 3, because libraries print to standard output. A driver holds one model and the KV cache of
 * its prompts in the peer's own prompt cache. It does not know what is measured.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

export interface OpenOptions {
  /** Model folder, or file in the peer's own format. */
  model: string;
  /** Where the peer is installed. Only the driver reads this folder. */
  installed: string;
  threads: number;
  /** Longest sequence: prompt and generated tokens. */
  contextTokens: number;
  /**
   * Most prompts in one `generate`. If there are several, each has at most `sharedTokens` including its generated
   * tokens.
   */
  sequences: number;
  sharedTokens: number;
  /** Settings that the peer offers its users. */
  settings: Record<string, unknown>;
}

export interface GenerateRequest {
  /** Token ids. All prompts arrive at the same time. */
  prompts: number[][];
  /** Number of tokens to generate greedily for each prompt, whatever their ids. */
  tokens: number;
}

export interface Generated {
  tokenIds: number[];
  /** Time of each token in milliseconds after the prompts arrived. */
  atMs: number[];
}

export type Command =
  | { op: 'open'; options: OpenOptions }
  | { op: 'generate'; request: GenerateRequest }
  | { op: 'close' };

export interface Opened {
  /** Library and version. */
  name: string;
  /** All settings at the start that affect speed. */
  settings: Record<string, unknown>;
}

export type Reply = { opened: Opened } | { generated: Generated[] } | { closed: true } | { error: string };

export interface Driver {
  open(options: OpenOptions): Promise<Opened>;
  generate(request: GenerateRequest): Promise<Generated[]>;
  close(): Promise<void>;
}

const REPLIES = 3;

/** Answers commands until `close` or the end of the input. */
export async function serve(driver: Driver): Promise<void> {
  const answer = async (command: Command): Promise<Reply> => {
    if (command.op === 'open') return { opened: await driver.open(command.options) };
    if (command.op === 'generate') return { generated: await driver.generate(command.request) };
    await driver.close();
    return { closed: true };
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const reply = await answer(JSON.parse(line) as Command).catch(
      (error: unknown): Reply => ({ error: error instanceof Error ? error.message : String(error) }),
    );
    writeSync(REPLIES, `${JSON.stringify(reply)}\n`);
    if ('closed' in reply) break;
  }
  process.exit(0);
}
