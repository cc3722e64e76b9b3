/**
 * The line under an answer: its cost and what the cache saved. Pure. Not translated, because outside checks read its
 * fixed format.
 */
import type { Timings, Usage } from '../../engine/protocol/tasks.ts';
import { ENGLISH } from '../format.ts';

/** "8,112 of 8,164 tokens reused · first token 61 ms · 44 tok/s". Without a rate for a single token. */
export function footerOf({ usage, timings }: { usage: Usage; timings: Timings }): string {
  const parts = [
    `${ENGLISH.count(usage.cachedTokens)} of ${ENGLISH.count(usage.promptTokens)} tokens reused`,
    `first token ${ENGLISH.count(timings.ttftMs)} ms`,
  ];
  if (timings.tpotMs > 0) parts.push(`${ENGLISH.count(1000 / timings.tpotMs)} tok/s`);
  if (usage.shiftedTokens) parts.push(`${ENGLISH.count(usage.shiftedTokens)} approximated`);
  if (usage.inParts) parts.push('read in parts');
  return parts.join(' · ');
}
