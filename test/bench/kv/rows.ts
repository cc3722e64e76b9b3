/** Measures what a codec changes in rows and in attention outputs. Does not measure text (see part `quality`). */
import { type CodecName, FORMATS } from '../../../engine/kv/approx/codecs/registry.ts';
import { percent } from '../eval/report.ts';
import type { KvSubject } from '../eval/subject.ts';
import { codecTreatment } from '../eval/treatments.ts';
import { table } from '../spread.ts';
import { type RowErrors, rowErrors } from './attentionError.ts';
import { queriesOf } from './queries.ts';

export interface RowsResult {
  model: string;
  numTexts: number;
  /** Tokens that go through a codec, and tokens after them whose attention is compared. */
  coded: number;
  compared: number;
  codecs: ({ codec: CodecName } & RowErrors)[];
}

/** @param texts have coded + compared tokens each. */
export async function measureRows(
  subject: KvSubject,
  texts: readonly (readonly number[])[],
  coded: number,
): Promise<RowsResult> {
  const errors = FORMATS.map((): RowErrors[] => []);
  for (const text of texts) {
    const whole = await subject.compute(text);
    const context = { ...whole, tokenIds: text.slice(0, coded), slots: whole.slots.subarray(0, coded) };
    const queries = await queriesOf(subject.modelDir, subject.model.config, subject.rope, text);
    for (const [f, { name }] of FORMATS.entries()) {
      await codecTreatment(name).apply(subject, context);
      errors[f]!.push(rowErrors(subject, whole.rows, subject.runner.pool.read(whole.slots), coded, queries, coded));
      subject.restore(whole);
    }
  }
  const mean = (of: readonly RowErrors[], key: keyof RowErrors): number =>
    of.reduce((sum, error) => sum + error[key], 0) / of.length;
  return {
    model: subject.name,
    numTexts: texts.length,
    coded,
    compared: (texts[0]?.length ?? coded) - coded,
    codecs: FORMATS.map(({ name }, f) => ({
      codec: name,
      keys: mean(errors[f]!, 'keys'),
      values: mean(errors[f]!, 'values'),
      attention: mean(errors[f]!, 'attention'),
    })),
  };
}

export function rowsTable({ codecs }: RowsResult): string {
  return table(
    ['format', 'K', 'V', 'attention'],
    codecs.map((c) => [c.codec, ...(['keys', 'values', 'attention'] as const).map((key) => percent(c[key], 2))]),
  );
}
