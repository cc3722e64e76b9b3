/** Lists the published result of each technique and why the figures here differ. */

export interface Published {
  /** Short enough for a table cell. */
  readonly reported: string;
  readonly source: string;
  /** One or two sentences. */
  readonly difference: string;
}

export const PUBLISHED: Readonly<Record<string, Published>> = {
  int8: {
    reported: 'q8_0: KL 0.001',
    source: 'llama.cpp #7412',
    difference:
      'Theirs is against 16 bits; ours is the window itself, so the row is 0 here, and its own cost against float32 rows is given apart. Theirs has a scale for 32 values, ours one for the 64 of a head.',
  },
  'int4-kivi': {
    reported: '2.6x less peak memory, 4 bits nearly lossless on LongBench',
    source: 'KIVI, arXiv 2402.02750',
    difference:
      'Their 2.6x is the peak of a whole process with 2 bits; 3.5x is the cache alone with 4 bits and 8-bit bounds, and only of what is older than the last 128 tokens, which stay as they are: short contexts compress less.',
  },
  nvfp4: {
    reported: 'half of FP8, below 1% loss',
    source:
      'NVIDIA Developer Blog, 8 December 2025, *Optimizing Inference for Long Context and Large Batch Sizes with NVFP4 KV Cache*',
    difference:
      'Theirs is read by Blackwell directly and its loss is of large models on benchmarks; here it is a format of the store, and one float32 scale is shared by a block of 32 tokens.',
  },
  turboquant: {
    reported: 'nothing lost at 3.5 bits',
    source: 'TurboQuant, arXiv 2504.19874',
    difference:
      'Theirs rotates at random, codes all layers alike and corrects scores by a second code of one bit; here the rotation is a Hadamard matrix, keys are coded before the rotary embedding and without the mean of each channel, scales are such that scores are right on average, and layers have 2, 3 or 4 bits by what the model was measured to lose.',
  },
  auto: {
    reported: '–',
    source: '–',
    difference: 'A setting of this project: three states of the codecs above in one context.',
  },
  kvzip: {
    reported: '3-4x smaller without loss',
    source: 'KVzip, arXiv 2505.23416',
    difference:
      'Theirs shares one budget over all heads of models of several billion parameters with contexts of up to 170,000 tokens, of which more is redundant; here all heads keep the same 90% of the tokens, and it is bits that layers have unevenly, 2, 3 or 4, in contexts of a thousand tokens.',
  },
  h2o: {
    reported: '20% kept, accuracy held',
    source: 'H2O, arXiv 2306.14048',
    difference:
      'Theirs keeps what generating has attended to, so does ours; but what is asked afterwards was not known then. That is why it is for long conversations only, never for files, and keeps 90%, coded as those of kvzip.',
  },
  sketch: {
    reported: '2.3x, perplexity +0.8%',
    source: 'SpeCache, arXiv 2503.16163',
    difference:
      'Theirs looks for rows at every token while the one before it is computed, and keeps all others at hand in 1-2 bits to attend to; here blocks of 32 tokens are chosen, at the end of the prompt in this table, and nothing is attended to but a third of the rows. With contexts that are read in parts, as in use: [long.md](long.md).',
  },
};
