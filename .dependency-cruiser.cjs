// Import directions (ARCHITECTURE.md, "Who may import whom"). A violation fails the tests.
/** @param {string} name @param {string} from @param {string} to @param {string} comment */
const never = (name, from, to, comment, except) => ({
  name,
  severity: 'error',
  comment,
  from: { path: from, ...(except ? { pathNot: except } : {}) },
  to: { path: to },
});

module.exports = {
  forbidden: [
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true } },
    never('engine-is-editor-free', '^engine/', '^(src/|vscode$)', 'The engine runs without an editor.'),
    {
      name: 'src-sees-only-the-protocol',
      severity: 'error',
      comment: 'The protocol is the whole contract.',
      from: { path: '^src/' },
      to: { path: '^engine/', pathNot: '^engine/protocol\\.ts$' },
    },
    never(
      'only-one-file-loads-onnxruntime',
      '^(engine|src)/',
      'onnxruntime',
      'One session, one place; the runner takes its types.',
      '^engine/model/(onnxSession|runner)\\.ts$',
    ),
    never(
      'scheduler-sees-no-tensor',
      '^engine/(scheduler|schedule|sequence|engine|stepPlanner|policies/.*)\\.ts$',
      '^engine/model/',
      'Queues on one side, tensors on the other.',
    ),
    never(
      'runner-sees-no-queue',
      '^engine/model/',
      '^engine/(scheduler|sequence|engine|assistant)\\.ts$',
      'Queues on one side, tensors on the other.',
    ),
    never(
      'cache-is-below',
      '^engine/cache/',
      '^engine/(scheduler|sequence|engine|assistant|text/|tasks/|model/)',
      'The cache knows token ids and slots, nothing above.',
    ),
    never(
      'text-and-tasks-are-below',
      '^engine/(text|tasks)/',
      '^engine/(scheduler|sequence|engine|assistant|cache/|model/)',
      'Prompts are pure functions of documents.',
    ),
    never('product-needs-no-tests', '^(src|engine)/', '^test/', 'Tests are not shipped.'),
    {
      name: 'vscode-in-src-only',
      severity: 'error',
      from: { pathNot: '^(src|test/vscode)/' },
      to: { path: '^vscode$' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // AssemblyScript, with a compiler of its own.
    exclude: { path: '^engine/cache/codecs/kernels/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { extensions: ['.ts', '.js', '.json'] },
    builtInModules: { add: ['vscode'] },
  },
};
