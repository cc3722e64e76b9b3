/** PURE: when a sequence waits for another that is computing the very tokens it needs next. */

/** Tokens of `tokenIds` from `startIndex` on, `count` of them, that a step computes and that join the prefix tree after it. */
export interface Computing {
  readonly tokenIds: readonly number[];
  readonly startIndex: number;
  readonly count: number;
}

/** Whether the token at `at`, the next one that a sequence needs, is what the leader computes in this step. */
export function follows(tokenIds: readonly number[], at: number, leader: Computing): boolean {
  if (at < leader.startIndex || at >= leader.startIndex + leader.count) return false;
  // Backwards: sequences that share the beginning differ late.
  for (let i = at; i >= 0; i--) if (tokenIds[i] !== leader.tokenIds[i]) return false;
  return true;
}
