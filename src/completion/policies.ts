/**
 * Which policies ghost text follows while somebody types. All are on; a benchmark switches one off to measure what it is worth
 * (`npm run bench -- typing`), and no setting of the user's reaches this. Whatever is chosen, only a text that fits is shown.
 */

export interface CompletionPolicies {
  /** A request under way goes on while the keys agree with what it writes, and serves their questions. Off: every change of the text gives it up. */
  readonly joinRunning: boolean;
  /** A finished completion is carried over as it is typed through and deleted back. Off: it holds at its own place only. */
  readonly carryOver: boolean;
  /** The completion after the one that is shown is computed while the user reads. */
  readonly ahead: boolean;
  /** The text around the cursor is read where it comes to rest. */
  readonly warmup: boolean;
}

export const ALL_POLICIES: CompletionPolicies = { joinRunning: true, carryOver: true, ahead: true, warmup: true };
