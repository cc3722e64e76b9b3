// Benchmarks: `npm run bench -- SUITE --out DIR`. Writes DIR/SUITE.json with everything, DIR/SUITE.md with the tables, which are
// printed, too, together with the machine that it was measured on, and the suite's charts as DIR/*.svg. Results that the
// documents quote are in test/bench/results.
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { SHAPES } from './shapes.ts';

const SHAPE = '[--shape NAME]';
const ROUNDS = '[--rounds N]';
const THREADS = '[--threads N]';

/** By name: what it measures, its options besides --out, and how it is run. */
const suites = {
  editor: {
    what: 'completions in a recorded session of typing, in the real editor',
    options: '',
    run: async () => {
      const [{ editorBench }, { editorReport }] = [await import('./editorBench.ts'), await import('./editorReport.ts')];
      const result = await editorBench();
      return { result, report: editorReport(result) };
    },
  },
  engine: {
    what: 'decoding, prompts, several sequences, drafts: the engine by itself',
    options: `${SHAPE} [--precision int8|int4] [--only GROUP,...] ${ROUNDS} [--long-rounds N] ${THREADS} [--profile]`,
    run: async (values) => {
      const [{ engineBench, engineOptions }, { engineReport, engineCharts, shares }] = [
        await import('./engineBench.ts'),
        await import('./engineReport.ts'),
      ];
      const result = await engineBench({ ...engineOptions(values), onProgress: (line) => console.error(line) });
      return {
        result: { ...result, shares: shares(result) },
        report: engineReport(result),
        charts: engineCharts(result),
      };
    },
  },
  mixed: {
    what: 'completions, chats and summaries at once, in several ways of batching',
    options: `[--shape NAME|starter] [--only SCENE,...] ${ROUNDS} [--speed N] [--rush N] [--context N] ${THREADS}`,
    run: async (values) => (await import('./mixed/mixedSuite.ts')).mixedSuite(values),
  },
  typing: {
    what: 'the recorded keys in the true completion provider, with each of its policies and without',
    options: `[--only VARIANT,...] ${ROUNDS} [--speed N] [--chat] ${THREADS}`,
    run: async (values) => (await import('./typing/typingBench.ts')).typingSuite(values),
  },
  shifted: {
    what: 'the first token after an edit, with position-shifted reuse and without',
    options: `[--shape NAME|starter] [--only TOKENS,...] ${ROUNDS} ${THREADS}`,
    run: async (values) => (await import('./shiftedBench.ts')).shiftedSuite(values),
  },
  products: {
    what: 'the linear layers of a step, by the form of their weights',
    options: '',
    run: async () => (await import('./blockProducts.ts')).productsBench(),
  },
  kv: {
    what: 'codecs of the KV store: speed, size, error, quality (part window: rows of the KV pool against float32 rows)',
    options: `[--only speed,rows,quality,window] ${SHAPE} ${ROUNDS} [--requests N: texts] ${THREADS}`,
    run: async (values) => (await import('./kv/kvSuite.ts')).kvSuite(values),
  },
  heads: {
    what: "the built-in model's shape with 4, 2 and 1 KV heads",
    options: `${ROUNDS} ${THREADS}`,
    run: async (values) => (await import('./headsBench.ts')).headsSuite(values),
  },
  kinds: {
    what: 'a step of shapes like Gemma 3, Mistral and Qwen3-MoE, with the native kernels and with onnxruntime',
    options: `[--only SHAPE,...] [--precision int8|int4] ${ROUNDS} ${THREADS}`,
    run: async (values) => (await import('./kindsBench.ts')).kindsSuite(values),
  },
  eviction: {
    what: 'what eviction policies find again of a recorded session and of simulated days, from the cache alone, without a model',
    options: '',
    run: async () => (await import('./eviction/evictionBench.ts')).evictionSuite(),
  },
  quality: {
    what: 'what the model gets right in code that it was not trained on: completions, questions, summaries (fetches it the first time)',
    options: `[--n N] [--only rest,line,block,questions,summaries] [--model FOLDER] [--open-files N: to copy from] ${THREADS}`,
    run: async ({ 'open-files': beside, ...values }) =>
      (await import('./quality/suite.ts')).qualitySuite({ ...values, beside }),
  },
  names: {
    what: 'members, imports and arguments that completions offer: right, existing or invented',
    options: `[--n N] [--only member,import,call] [--model FOLDER] [--open-files N: to copy from] ${THREADS}`,
    run: async ({ 'open-files': beside, ...values }) =>
      (await import('./quality/names.ts')).namesSuite({ ...values, beside }),
  },
  places: {
    what: 'emptied bodies, strings, attributes, patterns: what completions write there, what they copy, what does not parse',
    options: `[--n N: of bodies, and of the others] [--seed N] [--model FOLDER] [--open-files N: to copy from] ${THREADS}`,
    run: async ({ 'open-files': beside, ...values }) =>
      (await import('./quality/placesSuite.ts')).placesSuite({ ...values, beside }),
  },
  soak: {
    what: 'thousands of random requests, edits, aborts and evictions against each alone',
    options: '[--requests N] [--seed N] [--sanitized: the native kernels of `npm run native -- --sanitize`]',
    run: async (values) => (await import('./soak/soakBench.ts')).soakSuite(values),
  },
  tiers: {
    what: 'forty files under a small memory budget: questions about them, answered from KV pool, KV store and disk',
    options: `${SHAPE} ${THREADS}`,
    run: async (values) => (await import('./tiers/tiersBench.ts')).tiersSuite(values),
  },
  long: {
    what: 'contexts longer than the KV pool: answers from the rows that sketches choose, and what they cost',
    options: `[--only answers,cost] ${SHAPE} ${THREADS}`,
    run: async (values) => (await import('./long/longBench.ts')).longSuite(values),
  },
  strategies: {
    what: 'conversations with no cache, a growing cache, a static cache and the KV pool (named window)',
    options: `[--only none,dynamic,static,window] ${THREADS}`,
    run: async (values) => (await import('./strategies/strategiesBench.ts')).strategiesSuite(values),
  },
  gguf: {
    what: 'greedy tokens of the GGUF fixtures in float32, compared with llama.cpp (fetches it the first time)',
    options: '',
    run: async () => (await import('./peers/llamaIds.ts')).ggufSuite(),
  },
  peers: {
    what: 'other local engines on the same model (docs/performance.md); before the first run: --setup',
    options: `[--peers NAME,...] ${SHAPE} [--only SCENE,...] ${ROUNDS} ${THREADS} [--add] [--settings JSON] [--setup]`,
    run: async (values) => (await import('./peers/peersSuite.ts')).peersSuite(values),
  },
};

const text = { type: 'string' };
const flag = { type: 'boolean' };
const usage = [
  'usage: npm run bench -- SUITE --out DIR [OPTIONS]',
  ...Object.entries(suites).flatMap(([name, { what, options }]) => [
    '',
    `  ${name.padEnd(8)} ${what}`,
    ...(options ? [`           ${options}`] : []),
  ]),
].join('\n');
/** One line that says what is wrong and what there is, and the status of wrong usage. */
function refuse(line) {
  console.error(`npm run bench: ${line}`);
  process.exit(2);
}
const options = {
  help: flag,
  out: text,
  shape: text,
  precision: text,
  only: text,
  rounds: text,
  'long-rounds': text,
  threads: text,
  profile: flag,
  peers: text,
  settings: text,
  setup: flag,
  add: flag,
  speed: text,
  rush: text,
  context: text,
  requests: text,
  seed: text,
  sanitized: flag,
  chat: flag,
  n: text,
  model: text,
  'open-files': text,
};
/** Those of a suite, as its line of the usage has them. */
const optionsOf = (name) => ['--out', ...(suites[name].options.match(/--[a-z-]+/g) ?? [])];
/** What is wrong with an argument, in one line: parseArgs goes on to explain how it would be right as something else. */
function parsed(args) {
  try {
    return parseArgs({ args, allowPositionals: true, options });
  } catch (error) {
    const unknown = /^Unknown option '(-[^']*)'/.exec(error.message)?.[1];
    return refuse(
      unknown
        ? `unknown option ${unknown}; known are ${Object.keys(options)
            .map((name) => `--${name}`)
            .join(', ')}`
        : error.message.split('. ')[0],
    );
  }
}
const { values, positionals } = parsed(process.argv.slice(2));
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const [name, unexpected] = positionals;
if (name === undefined) {
  console.error(usage);
  process.exit(2);
}
if (!Object.hasOwn(suites, name)) refuse(`there is no suite ${name}; it is one of ${Object.keys(suites).join(', ')}`);
if (unexpected !== undefined) refuse(`unexpected argument ${unexpected}: one suite at a time`);
const foreign = Object.keys(values).find((option) => !optionsOf(name).includes(`--${option}`));
if (foreign !== undefined) refuse(`suite ${name} has no --${foreign}; it has ${optionsOf(name).join(', ')}`);
if (!values.out && !values.setup) refuse('--out DIR is missing: where the results go');
const noNumber = ['rounds', 'long-rounds', 'threads', 'requests', 'seed', 'n', 'open-files', 'context'].find(
  (option) => values[option] !== undefined && !/^\d+$/.test(values[option]),
);
if (noNumber !== undefined) refuse(`--${noNumber} ${values[noNumber]}: it must be a whole number`);
const shapes = [...Object.keys(SHAPES), ...(suites[name].options.includes('NAME|starter') ? ['starter'] : [])];
if (values.shape !== undefined && !shapes.includes(values.shape))
  refuse(`--shape ${values.shape}: it must be one of ${shapes.join(', ')}`);
const load = loadavg()[0];
const measured = await suites[name].run(values).catch((error) => {
  // Suites say what is wrong with an option in a sentence that begins with it; anything else is a fault that its trace helps to find.
  if (/^--[a-z-]+ /.test(error?.message)) refuse(error.message);
  throw error;
});
// A set-up step measures nothing.
if (!measured) process.exit(0);
const { result, report, charts = {} } = measured;
const { processorFeatures } = await import('./processor.ts');
const machine = {
  cpu: cpus()[0]?.model.trim(),
  features: processorFeatures(),
  processors: cpus().length,
  memoryBytes: totalmem(),
  platform: `${process.platform}-${process.arch}`,
  node: process.version,
  loadBefore: load,
  loadAfter: loadavg()[0],
  date: new Date().toISOString(),
};
mkdirSync(values.out, { recursive: true });
// Nine digits are more than any clock knows.
const short = (_, value) =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(9)) : value;
writeFileSync(path.join(values.out, `${name}.json`), `${JSON.stringify({ machine, ...result }, short)}\n`);
const conditions = `${machine.cpu}, ${machine.processors} processors, ${(machine.memoryBytes / 2 ** 30).toFixed(0)} GiB, ${machine.platform}, Node ${machine.node}; load ${load.toFixed(2)} before; ${machine.date.slice(0, 10)}`;
writeFileSync(path.join(values.out, `${name}.md`), `${report}\n\n${conditions}\n`);
for (const [file, svg] of Object.entries(charts)) writeFileSync(path.join(values.out, file), svg);
console.log(`${report}\n\n${conditions}`);
