/**
 * Switches for the policies of ghost text, for benchmarks only (`npm run bench -- typing`). All are on, and no setting
 * changes them. Only matching text is shown, whatever is switched off.
 */

export interface CompletionPolicies {
  /**
   * A running request goes on while the keys agree with its text, and answers the next questions. Off: every change of
   * the text aborts it.
   */
  readonly joinRunning: boolean;
  /**
   * A finished completion is carried over while it is typed through or deleted back to. Off: it applies at its own
   * position only.
   */
  readonly carryOver: boolean;
  /** The completion after the shown one is computed while the user reads. */
  readonly ahead: boolean;
  /** The text around the cursor is read where the cursor rests. */
  readonly warmup: boolean;
}

export const ALL_POLICIES: CompletionPolicies = { joinRunning: true, carryOver: true, ahead: true, warmup: true };
