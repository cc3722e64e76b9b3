/**
 * What the runner and a peer's driver process say to each other: one command a line on the driver's standard input, one
 * reply a line on its file descriptor 3, because libraries print what they like on standard output. Every driver holds one
 * model, keeps the K/V of what it has computed by its own prompt cache, and knows nothing of what is measured.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

export interface OpenOptions {
  /** Model folder or file of the peer's own format. */
  model: string;
  /** Where the peer is installed; what is in there is the driver's business. */
  installed: string;
  threads: number;
  /** Longest sequence, prompt and generated tokens. */
  contextTokens: number;
  /** Most prompts of one `generate`, each of at most `sharedTokens` with what is generated when there are several. */
  sequences: number;
  sharedTokens: number;
  /** What the peer lets its user choose. */
  settings: Record<string, unknown>;
}

export interface GenerateRequest {
  /** Token ids; all prompts arrive at the same time. */
  prompts: number[][];
  /** Greedy tokens to generate for each, whatever they are. */
  tokens: number;
}

export interface Generated {
  tokenIds: number[];
  /** Of each token, milliseconds after the prompts had arrived. */
  atMs: number[];
}

export type Command =
  | { op: 'open'; options: OpenOptions }
  | { op: 'generate'; request: GenerateRequest }
  | { op: 'close' };

export interface Opened {
  /** Library and version. */
  name: string;
  /** Everything it was started with that has a say in its speed. */
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
