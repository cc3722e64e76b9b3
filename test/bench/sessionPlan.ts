/** Plan of the recorded session: which files are open, which passages are written, and which questions are asked. */

/** A file of the session. It is a source file of this project, or several joined to make it long. */
export const FILES: { file: string; parts?: string[] }[] = [
  { file: 'engine/scheduler.ts' },
  { file: 'src/engineClient.ts' },
  {
    file: 'model/train/mix.py',
    parts: ['controls', 'holes', 'layouts', 'questions', 'answers', 'views', 'chat', 'packing', 'mix'].map(
      (name) => `model/train/${name}.py`,
    ),
  },
  {
    file: 'engine/cache.ts',
    parts: ['eviction', 'integrity', 'kvCache', 'kvMemory', 'lease', 'prefixTree', 'slots', 'store', 'window'].map(
      (name) => `engine/cache/${name}.ts`,
    ),
  },
  {
    file: 'engine/text.ts',
    parts: [
      ...[
        'chatPrompt',
        'chatTemplate',
        'completionPrompt',
        'detokenizer',
        'fim',
        'incrementalEncoding',
        'layout',
        'manifest',
        'modelText',
        'pieces',
        'sourceDocument',
        'tokenizer',
      ].map((name) => `engine/text/${name}.ts`),
      ...['chat', 'complete', 'completionText', 'preparedRequest', 'repetition', 'summarize'].map(
        (name) => `engine/tasks/${name}.ts`,
      ),
    ],
  },
];

export type PlanStep =
  | { open: string }
  /**
   * Writes all lines from the first to the last of these two. The file lacks them until then. Both are given without
   * indentation.
   */
  | { lines: [first: string, last: string]; undo?: true }
  /** Writes the rest of a line, starting at `rest`. */
  | { line: string; rest: string }
  | { ask: string }
  | { summarize: true };

export const PLAN: PlanStep[] = [
  { open: 'engine/scheduler.ts' },
  { lines: ['sequence.arrivalIndex = this.#numAdded++;', 'this.#waiting.add(sequence);'] },
  { ask: 'Which classes does this file define?' },
  { line: 'const victim = this.#lowest();', rest: 'this.' },
  { open: 'engine/cache.ts' },
  {
    lines: [
      'for (const child of [...node.children.values()]) this.drop(child);',
      'if (node.stored) this.store.drop(node.stored);',
    ],
    undo: true,
  },
  { open: 'model/train/mix.py' },
  { lines: ['starts, p = [], 0', 'return lines, starts'] },
  { summarize: true },
  { open: 'src/engineClient.ts' },
  { line: "if (this.#state.kind === 'ready') this.#connection?.notify(message);", rest: "'ready')" },
  { lines: ['const connection = this.#connection;', "this.#setState({ kind: 'stopped' });"], undo: true },
  { open: 'engine/text.ts' },
  { lines: ['let value = map.get(key);', 'return value;'] },
  { ask: 'What is this file for?' },
  { open: 'engine/cache.ts' },
  { line: 'const node = newNode(parent, tokenIds, endIndex(parent));', rest: 'newNode' },
  { summarize: true },
];
