/**
 * Which policies the engine follows. All are on; a benchmark switches one off to measure what it is worth, and no
 * setting of the user's reaches this. Whatever is chosen, a sequence gets the same tokens, but for what is said to be
 * an approximation.
 */

export interface Policies {
  /**
   * Who shares a step. `continuous`: whoever has something to compute, from step to step. `single`: one request from
   * beginning to end, the most urgent first. The prefix cache serves both.
   */
  readonly batching: 'continuous' | 'single';
  /** Completion before chat before summary. Off: one class, first come first served; idle work stays last. */
  readonly classes: boolean;
  /** Waiting lifts a sequence by a class, so that none starves. */
  readonly ageing: boolean;
  /** Of equals, the one whose first token the step can give goes first. */
  readonly firstTokenFirst: boolean;
  /** Of equals, the one that has been served least goes first. Off: the one that came first. */
  readonly fairness: boolean;
  /** Prompt chunks as large as the learnt cost of a step allows. Off: chunks of a fixed size. */
  readonly stepTarget: boolean;
  /**
   * Sequences that have little of the pool in common have steps of their own where that is quicker than together, and
   * take turns. Off: whoever has something to compute.
   */
  readonly grouping: boolean;
  /** A sequence waits for another that is computing the very tokens that it needs next. Off: both compute them. */
  readonly leader: boolean;
  /** A step waits some milliseconds for requests that are about to arrive. */
  readonly microBatch: boolean;
  /** Drafted tokens are verified several to a step. */
  readonly speculation: boolean;
  /** A lower class gives up its slots and its place to a higher one. Off: only when nobody could go on otherwise. */
  readonly preemption: boolean;
}

export const ALL_POLICIES: Policies = {
  batching: 'continuous',
  classes: true,
  ageing: true,
  firstTokenFirst: true,
  fairness: true,
  stepTarget: true,
  grouping: true,
  leader: true,
  microBatch: true,
  speculation: true,
  preemption: true,
};
