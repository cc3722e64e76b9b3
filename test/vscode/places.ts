/**
 * Places in the sample where tests request completions, and the command line's output there.
 * Tests never contain the model's words.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { INVENTORY } from './suite.ts';

/** The text before and after a cursor. */
export interface Place {
  before: string;
  after: string;
}

/** The sample with `text` inserted after `anchor` and the cursor after that text. */
export function insertion(anchor: string, text: string, after = ''): Place {
  const at = INVENTORY.indexOf(anchor) + anchor.length;
  return { before: INVENTORY.slice(0, at) + text, after: after + INVENTORY.slice(at) };
}

/** The sample without the rest of the line after `anchor`. The cursor is there. */
export function unfinishedLine(anchor: string): Place {
  const at = INVENTORY.indexOf(anchor) + anchor.length;
  return { before: INVENTORY.slice(0, at), after: INVENTORY.slice(INVENTORY.indexOf('\n', at)) };
}

/** 1-based, as editors show them. */
export function cursorOf({ before }: Place): { line: number; column: number } {
  const lines = before.split('\n');
  return { line: lines.length, column: (lines.at(-1) as string).length + 1 };
}

/** Output of `kvasir complete` without its final line break. */
export async function commandLineCompletion(file: string, place: Place): Promise<string> {
  const { line, column } = cursorOf(place);
  const { stdout } = await promisify(execFile)(process.execPath, [
    'dist/cli.js',
    'complete',
    '--file',
    file,
    '--line',
    String(line),
    '--column',
    String(column),
  ]);
  return stdout.replace(/\n$/, '');
}
