/**
 * The scheduling policy with single decisions switched off, for benchmarks and tests that measure the value of each.
 */
import type { EngineOptions } from '../../../engine/core/engineOptions.ts';
import { type Merits, SchedulingPolicy } from '../../../engine/scheduler/policy.ts';

/** The decisions that an engine makes. Each is on by default. */
export interface PolicySwitches {
  /** Completion before chat before summary. Off: one class, in order of arrival; idle work stays last. */
  classes?: boolean;
  /** Waiting raises a sequence by a class. */
  ageing?: boolean;
  /** Among equals, the sequence whose first token the step can give goes first. */
  firstTokenFirst?: boolean;
  /** Among equals, the client served least goes first. Off: order of arrival. */
  fairness?: boolean;
  /** Past costs decide the size of a step. Off: FIXED_TOKENS. */
  stepTarget?: boolean;
  /** Sequences with few common columns take turns if that is faster. Off: all share each step. */
  grouping?: boolean;
  /** In-flight prefix sharing. Off: two sequences compute the same tokens. */
  leader?: boolean;
  /** Tokens are drafted. */
  speculation?: boolean;
  /** A higher class takes slots from a lower one. Off: only from idle work. */
  preemption?: boolean;
}

export const POLICY_NAMES = [
  'classes',
  'ageing',
  'firstTokenFirst',
  'fairness',
  'stepTarget',
  'grouping',
  'leader',
  'speculation',
  'preemption',
] as const satisfies readonly (keyof PolicySwitches)[];

/** Number of tokens in every step, as in servers with many users. */
const FIXED_TOKENS = 512;

/** Options of an engine with these switches. */
export function policyOptions(switches: PolicySwitches): Pick<EngineOptions, 'policy' | 'tokenBudget'> {
  return {
    policy: new SwitchedPolicy(switches),
    ...(switches.stepTarget === false ? { tokenBudget: FIXED_TOKENS } : {}),
  };
}

type Params<M extends keyof SchedulingPolicy> = SchedulingPolicy[M] extends (...args: infer P) => unknown ? P : never;

class SwitchedPolicy extends SchedulingPolicy {
  readonly #off: PolicySwitches;

  constructor(switches: PolicySwitches) {
    super();
    this.#off = switches;
  }

  override rank(...[sequence]: Params<'rank'>): number {
    return this.#off.classes === false && sequence.priority !== 'idle' ? 0 : super.rank(sequence);
  }

  override isUrgent(...[sequence]: Params<'isUrgent'>): boolean {
    return this.#off.classes !== false && super.isUrgent(sequence);
  }

  override level(...[sequence, now]: Params<'level'>): number {
    return this.#off.ageing === false ? this.rank(sequence) : super.level(sequence, now);
  }

  override byService<S extends Parameters<SchedulingPolicy['level']>[0]>(
    now: number,
    merits: Merits<S>,
  ): (a: S, b: S) => number {
    return super.byService<S>(now, {
      givesToken: (sequence) => this.#off.firstTokenFirst !== false && merits.givesToken(sequence),
      served: (sequence) => (this.#off.fairness === false ? 0 : merits.served(sequence)),
    });
  }

  override isDueSlots(...[sequence, waitedMs]: Params<'isDueSlots'>): boolean {
    return this.#off.ageing !== false && super.isDueSlots(sequence, waitedMs);
  }

  override isPreempted(...[victim, place, waiting]: Params<'isPreempted'>): boolean {
    if (this.#off.preemption === false && victim.priority !== 'idle') return false;
    return super.isPreempted(victim, place, waiting);
  }

  override waitsFor(...args: Params<'waitsFor'>): boolean {
    return this.#off.leader !== false && super.waitsFor(...args);
  }

  override mayDraft(...args: Params<'mayDraft'>): boolean {
    return this.#off.speculation !== false && super.mayDraft(...args);
  }

  override nextTurn<C extends Parameters<SchedulingPolicy['nextTurn']>[0][number]>(
    running: readonly C[],
    now: number,
  ): C | null {
    return this.#off.grouping === false ? null : super.nextTurn(running, now);
  }

  override sharesStep(...args: Params<'sharesStep'>): boolean {
    return this.#off.grouping === false || super.sharesStep(...args);
  }

  override joins(...args: Params<'joins'>): boolean {
    return this.#off.grouping === false || super.joins(...args);
  }
}
