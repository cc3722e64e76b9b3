import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

/**
 * Copies a file that a running program may have mapped into memory. To write into such a file ends the program. So the
 * copy gets its name when it is whole, and an equal file stays as it is.
 */
export function placeFile(from, to) {
  const content = readFileSync(from);
  if (existsSync(to) && readFileSync(to).equals(content)) return;
  const whole = `${to}.${process.pid}`;
  writeFileSync(whole, content);
  renameSync(whole, to);
}
