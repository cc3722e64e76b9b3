/** Contexts that are longer than the window: answers, then costs. Pure. */
import { answersOf } from '../../../engine/cli/evaluateQuality.ts';
import { short, table } from '../spread.ts';
import type { LongBench } from './longBench.ts';

export function longReport({ contexts, contextTokens, slots, answers, shape, costs }: LongBench): string {
  const parts: string[] = [];
  if (answers.length > 0) {
    const rows = answers.map(({ choosing, answers: counts }) => [choosing, ...(['question', 'needle'] as const).flatMap((kind) => {
      const of = answersOf(counts, kind);
      return of ? [`${of.right} of ${of.n}`, `${of.same}`] : ['–', '–'];
    })]);
    parts.push(`Built-in model, ${contexts} contexts of ${contextTokens} tokens on average, a ceiling of ${slots} slots, a quarter of which are chosen blocks.`, table(['rows', 'questions right', 'the same text', 'needles right', 'the same text'], rows));
  }
  if (costs.length > 0) {
    const megabytes = (bytes: number): string => `${short(bytes / 1e6)} MB`;
    const rows = costs.map((cost) => [cost.choosing, cost.contextTokens, megabytes(cost.maxBytes), megabytes(cost.peakBytes), megabytes(cost.spilledBytes), `${short(cost.firstMs / 1000)} s`, `${short(cost.nextMs)} ms`, `${short(cost.tokenMs)} ms`]);
    parts.push(`Shape ${shape}.`, table(['rows', 'context', 'ceiling of rows', 'most, with scratch', 'on disk', 'first question', 'next one', 'a token'], rows));
  }
  return parts.join('\n\n');
}
