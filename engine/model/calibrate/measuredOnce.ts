/** Keeps the result of a measurement in a file beside the imported model, so that it runs once per model or machine. */
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { makeFolders } from '../../kv/disk/makeFolders.ts';

/**
 * The result that the file holds for the same `key`. Otherwise runs `measure` and writes its result; null is not kept.
 * `key` holds all that the result depends on besides the model: format, sizes, bounds.
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
    // Not measured yet, or not our file.
  }
  // `measure` may keep results of its own in the folder.
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
