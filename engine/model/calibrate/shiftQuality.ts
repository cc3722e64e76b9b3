/**
 * Measures what shifted reuse costs with a model: KV rows of an older version of a text at other positions. Edits a
 * sample text and compares the next tokens after the edits with those over exact rows. Measures once per model.
 */
import { type Shift, planShifts } from '../../kv/approx/shifted/shiftedReuse.ts';
import {
  addPosition,
  computeRows,
  type Divergence,
  measuredOnce,
  noDivergence,
  releasing,
  scoreTokens,
  slotRange,
} from './measurement.ts';
import type { ShiftQuality } from '../../protocol/stats.ts';
import type { ImportedModel } from '../load/importedModel.ts';
import type { Runner } from '../batch.ts';
import { SAMPLE_TEXT } from './sampleText.ts';

/**
 * Largest mean KL divergence, in nats, with which rows are reused. The limit is below the divergence of a prompt with
 * the text before the edit: 7.5e-3 with version 1 of the built-in model. Shifted reuse had 1.3e-3 with version 1 and
 * has 3.7e-3 with version 2 (docs/decisions/0014-shifted-reuse.md).
 */
export const MAX_SHIFT_DIVERGENCE = 5e-3;
/** Version of the file. Raise it when the measurement changes. */
const FORMAT = 1;
const FILE = 'shifted.json';
/** Tokens scored after each cursor. */
const SCORED = 32;
/** Cursors, as shares of the reused rows. */
const CURSORS = [0.25, 0.5, 0.75, 1];
/** A longer text only costs time. */
const MAX_TOKENS = 2000;

/** The text after four small edits at a line: a line added, lines removed, a word renamed, lines replaced. */
function edited(lines: readonly string[], at: number): string[][] {
  const elsewhere = lines.slice(-8, -1);
  const named = lines.findIndex((line, i) => i >= at && /[A-Za-z]{3,}/.test(line));
  return [
    [...lines.slice(0, at), elsewhere[0] ?? '', ...lines.slice(at)],
    [...lines.slice(0, at), ...lines.slice(at + 3)],
    lines.map((line, i) => (i === named || i === named + 1 ? line.replace(/[A-Za-z]{3,}/, 'renamed') : line)),
    [...lines.slice(0, at - 1), ...elsewhere, ...lines.slice(at + 1)],
  ];
}

/**
 * The divergence with reused rows. Edits the text at some places (shares of its lines) and scores the tokens after
 * them. Uses the pool and the scratch
 * of the runner and leaves them empty, so nothing else may hold slots. `onProgress` gets 0 .. 1.
 */
export async function measureShift(
  runner: Runner,
  encode: (text: string) => number[],
  text: string,
  options: {
    contextTokens: number;
    places: readonly number[];
    onProgress?: (fraction: number) => void;
  },
): Promise<Divergence> {
  const result = noDivergence();
  const lines = text.split('\n');
  const limit = Math.min(MAX_TOKENS, options.contextTokens - SCORED);
  const whole = encode(text);
  const before = whole.slice(0, limit);
  // Only places in the part of the text that is read.
  const numLines = Math.floor(lines.length * Math.min(1, limit / whole.length));
  const texts = options.places
    .flatMap((place) => edited(lines, Math.max(1, Math.floor(numLines * place))))
    .map((changed) => encode(changed.join('\n')).slice(0, limit));
  const maxTokens = Math.max(before.length, ...texts.map(({ length }) => length));
  const { pool } = runner;
  pool.resize(2 * maxTokens + 2 * SCORED);
  const old = slotRange(0, before.length);
  const scored = slotRange(2 * maxTokens, 2 * maxTokens + SCORED);
  return releasing(runner, async () => {
    await computeRows(runner, before, old);
    for (const [i, after] of texts.entries()) {
      let same = 0;
      while (same < after.length && before[same] === after[same]) same++;
      const shifts = planShifts(before, after, same, after.length - SCORED);
      const own = Int32Array.of(...old.subarray(0, same), ...slotRange(maxTokens + same, maxTokens + after.length));
      if (shifts.length > 0) {
        await computeRows(runner, after, own, { from: same });
        const reference = await score(runner, after, own, shifts, scored);
        for (const { start, end, by } of shifts) {
          const rows = pool.read(old.subarray(start - by, end - by));
          runner.shiftKeys(rows, by);
          pool.write(own.subarray(start, end), rows, 0, start);
        }
        compare(result, reference, await score(runner, after, own, shifts, scored));
      }
      options.onProgress?.((i + 1) / texts.length);
    }
    return result;
  });
}

/**
 * The quality of shifted reuse with this model, as recorded or newly measured on the sample text. Decides whether the
 * model may reuse rows. Null if the context is too short.
 */
export function shiftQuality(
  model: ImportedModel,
  runner: Runner,
  encode: (text: string) => number[],
  contextTokens: number,
  onProgress: (fraction: number) => void,
): Promise<ShiftQuality | null> {
  return measuredOnce(model.dir, FILE, { format: FORMAT, contextTokens, bound: MAX_SHIFT_DIVERGENCE }, async () => {
    const shifted = await measureShift(runner, encode, SAMPLE_TEXT, { contextTokens, places: [0.2], onProgress });
    if (shifted.numTokens === 0) return null;
    const { klSum, klMax, agreed, numTokens } = shifted;
    return { klMean: klSum / numTokens, klMax, top1: agreed / numTokens, bound: MAX_SHIFT_DIVERGENCE, numTokens };
  });
}

/** Log-probabilities of the tokens after each cursor, over the rows before it. */
async function score(
  runner: Runner,
  ids: readonly number[],
  slots: Int32Array,
  shifts: readonly Shift[],
  scored: Int32Array,
): Promise<Float64Array[]> {
  const rows: Float64Array[] = [];
  for (const { start, end } of shifts) {
    for (const share of CURSORS) {
      const at = Math.floor(start + (end - start) * share);
      rows.push(...(await scoreTokens(runner, ids.slice(at, at + SCORED), at, slots.subarray(0, at), scored)));
    }
  }
  return rows;
}

function compare(to: Divergence, reference: readonly Float64Array[], rows: readonly Float64Array[]): void {
  for (const [i, row] of rows.entries()) addPosition(to, reference[i]!, row);
}
