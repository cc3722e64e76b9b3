/**
 * The prefill lane of the step graph: causal attention of the next tokens of a prompt, in float32 over the scratch,
 * which holds the rows before them. A window counts rows there, not positions: after pruning it reaches further back.
 * Does not fill the scratch.
 */
import { type CodedRows, type GraphOps, MS } from './graphOps.ts';
import { DataType } from './onnxWriter.ts';

/** Names of the feeds of the prefill lane (see feeds.ts). */
export interface PrefillInputs {
  readonly lastRow: string;
  readonly numRows: string;
  /** Whether the keys of the layer are coded without their bias, which is fed as `kb{l}`. */
  readonly biased: boolean;
}

/**
 * Takes q [1, numHeads, n, headSize] and the rows of n tokens of one sequence. Returns a function that writes the
 * result, [n, numHeads * headSize], into the branch in which it is called. The operator needs no intermediate values of
 * the size of the scores, so it is fast for many tokens. It concatenates old and new rows itself. Writing new rows into
 * the scratch instead took 50 ms more for 2,560 rows of Qwen2.5-0.5B, because the runtime copies them once more.
 */
export function prefillLane(
  ops: GraphOps,
  inputs: PrefillInputs,
  q: string,
  { codes, scales }: CodedRows,
  l: number,
): () => string {
  const { g } = ops;
  const { numHeads, kvHeads, headSize, sliding, softcaps } = ops.config;
  const op: GraphOps['op'] = (...node) => ops.op(...node);
  const ints = (...values: number[]) => ops.ints(...values);
  const dequantised = op('Mul', [op('Cast', [codes], { to: DataType.float32 }), scales]);
  let packed: string;
  if (inputs.biased) {
    const [keys, values] = ops.pair('Split', [dequantised, ops.halves], { axis: 1 });
    packed = op('Concat', [q, op('Add', [keys, `kb${l}`]), values], { axis: 1 });
  } else packed = op('Concat', [q, dequantised], { axis: 1 });
  // A row of zeros after the last token, because a single row would use another kernel, with other last bits.
  const padded = op(
    'Concat',
    [
      packed,
      g.constant(
        'float32',
        [1, numHeads + 2 * kvHeads, 1, headSize],
        new Float32Array((numHeads + 2 * kvHeads) * headSize),
      ),
    ],
    { axis: 2 },
  );
  const byToken = op('Reshape', [
    op('Transpose', [padded], { perm: [0, 2, 1, 3] }),
    ints(1, -1, (numHeads + 2 * kvHeads) * headSize),
  ]);
  const [mixed] = g.node(
    'GroupQueryAttention',
    [byToken, '', '', `pk${l}`, `pv${l}`, inputs.lastRow, inputs.numRows],
    3,
    {
      num_heads: numHeads,
      kv_num_heads: kvHeads,
      scale: { float: 1 },
      ...(sliding?.layers.includes(l) ? { local_window_size: sliding.tokens } : {}),
      ...(softcaps.scores === null ? {} : { softcap: { float: softcaps.scores } }),
    },
    MS,
  ) as [string, string, string];
  return () => op('Reshape', [op('Slice', [mixed, ints(0), ints(-1), ints(1)]), ints(-1, numHeads * headSize)]);
}
