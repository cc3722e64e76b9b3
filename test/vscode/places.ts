/** Places in the sample at which a completion is asked for, and what the command line says there: the model's words are in no test. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { INVENTORY } from './suite.ts';

/** A file around a cursor. */
export interface Place {
  before: string;
  after: string;
}

/** The sample with `text` written behind `anchor` and the cursor after it. */
export function insertion(anchor: string, text: string, after = ''): Place {
  const at = INVENTORY.indexOf(anchor) + anchor.length;
  return { before: INVENTORY.slice(0, at) + text, after: after + INVENTORY.slice(at) };
}

/** The sample without the rest of the line behind `anchor`, where the cursor is. */
export function unfinishedLine(anchor: string): Place {
  const at = INVENTORY.indexOf(anchor) + anchor.length;
  return { before: INVENTORY.slice(0, at), after: INVENTORY.slice(INVENTORY.indexOf('\n', at)) };
}

/** 1-based, as editors show them. */
export function cursorOf({ before }: Place): { line: number; column: number } {
  const lines = before.split('\n');
  return { line: lines.length, column: (lines.at(-1) as string).length + 1 };
}

/** What `kvasir complete` prints; one line break ends its output. */
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
