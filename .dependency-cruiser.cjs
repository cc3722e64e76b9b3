// Import directions (ARCHITECTURE.md, "Import rule"). A violation fails the tests.
// The folders of the engine from top to bottom. A folder imports from itself and from folders below it only.
const FOLDERS = [
  'cli',
  'server',
  'core',
  'scheduler',
  'tasks',
  'facts',
  'text',
  'sequence',
  'model',
  'kv',
  'find',
  'download',
  'protocol',
];

/** The same inside a folder: its folders from top to bottom. */
const MODEL_FOLDERS = ['import', 'calibrate', 'native', 'runtime', 'graph', 'load'];
const TEXT_FOLDERS = ['prompt', 'format', 'copy|syntax', 'tokenizer'];

const never = (name, from, to, comment) => ({
  name,
  severity: 'error',
  comment,
  from: { path: from },
  to: { path: to },
});

const downward = (parent, folders) =>
  folders
    .slice(1)
    .map((folder, i) =>
      never(
        `${parent}-${folder}-is-below`,
        `^engine/${parent}/(${folder})/`,
        `^engine/${parent}/(${folders.slice(0, i + 1).join('|')})/`,
        `${parent}/${folder}/ imports only from the folders below it.`,
      ),
    );

/** The folders of the optional, approximate techniques in kv/approx/; two have a measurement in model/calibrate/. */
const TECHNIQUES = [
  { folder: 'sparse' },
  { folder: 'shifted', measurement: 'shiftQuality' },
  { folder: 'pruned', measurement: 'pruneQuality' },
];

/** Only its registries and its measurement import a technique, and only a registry imports the measurement. */
const behindRegistries = ({ folder, measurement }) => {
  const own = `^engine/kv/approx/${folder}/`;
  const measured = measurement && `^engine/model/calibrate/${measurement}\\.ts$`;
  const only = (what, to, importers) => ({
    name: `${what}-is-behind-its-registry`,
    severity: 'error',
    comment: 'Only its registry imports an approximate technique (CONTRIBUTING.md, "Remove an approximate technique").',
    from: { path: '^(engine|src)/', pathNot: importers.filter(Boolean).join('|') },
    to: { path: to },
  });
  return [
    only(folder, own, [own, '^engine/kv/approx/approximations\\.ts$', measured]),
    ...(measured ? [only(measurement, measured, ['^engine/server/approximationChoice\\.ts$'])] : []),
  ];
};

module.exports = {
  forbidden: [
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true } },
    ...FOLDERS.slice(1).map((folder, i) =>
      never(
        `${folder}-is-below`,
        `^engine/(${folder})/`,
        `^engine/(${FOLDERS.slice(0, i + 1).join('|')})/`,
        `${folder}/ imports only from the folders below it.`,
      ),
    ),
    ...downward('model', MODEL_FOLDERS),
    ...downward('text', TEXT_FOLDERS),
    never(
      'model-interface-is-below',
      '^engine/model/[^/]+$',
      '^engine/model/[^/]+/',
      'The root of model/ holds the interface only.',
    ),
    never(
      'kv-parts-are-below-its-owner',
      '^engine/kv/(eviction|disk|approx/codecs)/',
      '^engine/kv/(kvCache|kvMemory|cachedPrefixes|lease)\\.ts$',
      'Eviction, disk tier and codecs do not know who owns them.',
    ),
    never(
      'codecs-know-rows-only',
      '^engine/kv/approx/codecs/',
      '^engine/kv/(?!approx/codecs/|kvRows\\.ts$)',
      'A codec turns rows into bytes; it knows no cache.',
    ),
    ...TECHNIQUES.flatMap(behindRegistries),
    never(
      'download-knows-no-engine',
      '^engine/(?!cli/|find/|download/)',
      '^engine/(find|download)/',
      'Only the command line and the editor find and download models.',
    ),
    never('engine-is-editor-free', '^engine/', '^(src/|vscode$)', 'The engine runs without an editor.'),
    {
      name: 'src-sees-only-the-protocol',
      severity: 'error',
      comment: 'The protocol is the whole contract. Finding and downloading models needs no engine.',
      from: { path: '^src/' },
      to: { path: '^engine/', pathNot: '^engine/(protocol|find|download)/' },
    },
    {
      name: 'only-native-loads-the-kernels',
      severity: 'error',
      comment: 'Everybody else uses NativeRunner and nativeFault.',
      from: { path: '^(engine|src)/', pathNot: '^engine/model/native/' },
      to: { path: '^engine/model/native/addon\\.ts$' },
    },
    {
      name: 'only-the-runtime-loads-onnxruntime',
      severity: 'error',
      comment: 'One session, one place.',
      from: { path: '^(engine|src)/', pathNot: '^engine/model/runtime/' },
      to: { path: 'onnxruntime' },
    },
    never(
      'scheduler-sees-no-tensor',
      '^engine/scheduler/',
      '^engine/model/[^/]+/',
      'The scheduler sees only the interface of the model, which is at the root of model/.',
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
    exclude: { path: '^engine/kv/approx/codecs/kernels/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { extensions: ['.ts', '.js', '.json'] },
    builtInModules: { add: ['vscode'] },
  },
};
