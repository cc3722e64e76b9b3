/**
 * Which tokens of a prompt go through the prefill lane. It must follow from the prompt, the model and the machine
 * alone, and two prompts that share a beginning must agree there, or they could not share rows. So it depends on what
 * the tokens are: a file block or a text of the user, however long the conversation has become, and not on what a
 * model has generated. A pure function.
 */
import { MIN_PREFILL } from '../model/batch.ts';
import type { TokenRange } from '../kv/laneIds.ts';

/**
 * @param numBlock tokens of the file block. @param texts behind it, in order, counted from its end. @param fewest
 * tokens of a text that is worth it.
 */
export function prefillRanges(numBlock: number, texts: readonly TokenRange[], fewest = MIN_PREFILL): TokenRange[] {
  const ranges: TokenRange[] = [[0, numBlock]];
  for (const [from, to] of texts) {
    if (to - from < fewest) continue;
    const [first, end] = ranges.at(-1)!;
    if (end === numBlock + from) ranges[ranges.length - 1] = [first, numBlock + to];
    else ranges.push([numBlock + from, numBlock + to]);
  }
  return ranges.filter(([from, to]) => to > from);
}
