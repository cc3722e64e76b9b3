/** What is measured once per model or machine: kept as a file beside what is imported, and measured again when the way of measuring has changed. */
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { makeFolders } from '../../kv/disk/makeFolders.ts';

/**
 * What stands in the file for the same `key`, or else what `measure` says, which is written there; null is not kept.
 * @param key of all that the result depends on beside the model: format, sizes, bounds.
 */
export async function measuredOnce<T>(
  dir: string,
  name: string,
  key: object,
  measure: () => Promise<T | null>,
): Promise<T | null> {
  const file = path.join(dir, name);
  try {
    const known = JSON.parse(await readFile(file, 'utf8')) as { key?: unknown; result?: T };
    if (known.result && JSON.stringify(known.key) === JSON.stringify(key)) return known.result;
  } catch {
    // Not measured yet, or not ours.
  }
  // What is measured on the way may be kept there, too.
  await makeFolders(dir).catch(() => undefined);
  const result = await measure();
  if (result === null) return null;
  try {
    const draft = `${file}.${process.pid}`;
    await writeFile(draft, `${JSON.stringify({ key, result })}\n`);
    await rename(draft, file);
  } catch {
    // Measured again at the next start.
  }
  return result;
}
