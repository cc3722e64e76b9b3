// Benchmarks: `npm run bench -- SUITE --out DIR`. Writes DIR/SUITE.json with everything, DIR/SUITE.md with the tables, which are
// printed, too, together with the machine that it was measured on, and the suite's charts as DIR/*.svg.
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

const suites = {
  editor: async () => {
    const [{ editorBench }, { editorReport }] = [await import('./editorBench.ts'), await import('./editorReport.ts')];
    const result = await editorBench();
    return { result, report: editorReport(result) };
  },
  // [--shape NAME] [--precision int8|int4] [--only GROUP,...] [--rounds N] [--long-rounds N] [--threads N] [--profile]
  engine: async (values) => {
    const [{ engineBench, engineOptions }, { engineReport, engineCharts, shares }] = [await import('./engineBench.ts'), await import('./engineReport.ts')];
    const result = await engineBench({ ...engineOptions(values), onProgress: (line) => console.error(line) });
    return { result: { ...result, shares: shares(result) }, report: engineReport(result), charts: engineCharts(result) };
  },
  // [--shape NAME|starter] [--only SCENE,...] [--rounds N] [--speed N] [--rush N] [--context N] [--threads N]
  mixed: async (values) => (await import('./mixed/mixedSuite.ts')).mixedSuite(values),
  // [--shape NAME|starter] [--only TOKENS,...] [--rounds N] [--threads N]
  shifted: async (values) => (await import('./shiftedBench.ts')).shiftedSuite(values),
  // [--only speed,quality] [--shape NAME] [--rounds N] [--requests N: texts] [--threads N]
  kv: async (values) => (await import('./kv/kvSuite.ts')).kvSuite(values),
  // [--requests N]
  soak: async (values) => (await import('./soak/soakBench.ts')).soakSuite(values),
  // [--peers NAME,...] [--shape NAME] [--only SCENE,...] [--rounds N] [--threads N] [--add] [--settings JSON]; before the first run: --setup
  peers: async (values) => (await import('./peers/peersSuite.ts')).peersSuite(values),
};

const text = { type: 'string' };
const flag = { type: 'boolean' };
const { values, positionals } = parseArgs({ allowPositionals: true, options: { out: text, shape: text, precision: text, only: text, rounds: text, 'long-rounds': text, threads: text, profile: flag, peers: text, settings: text, setup: flag, add: flag, speed: text, rush: text, context: text, requests: text } });
const [name] = positionals;
if (positionals.length !== 1 || !Object.hasOwn(suites, name) || !(values.out || values.setup)) {
  console.error(`usage: npm run bench -- SUITE --out DIR; SUITE is one of ${Object.keys(suites).join(', ')}`);
  process.exit(2);
}
const load = loadavg()[0];
const measured = await suites[name](values);
// A set-up step measures nothing.
if (!measured) process.exit(0);
const { result, report, charts = {} } = measured;
const machine = { cpu: cpus()[0]?.model.trim(), processors: cpus().length, memoryBytes: totalmem(), platform: `${process.platform}-${process.arch}`, node: process.version, loadBefore: load, loadAfter: loadavg()[0], date: new Date().toISOString() };
mkdirSync(values.out, { recursive: true });
writeFileSync(path.join(values.out, `${name}.json`), `${JSON.stringify({ machine, ...result }, null, 1)}\n`);
const conditions = `${machine.cpu}, ${machine.processors} processors, ${(machine.memoryBytes / 2 ** 30).toFixed(0)} GiB, ${machine.platform}, Node ${machine.node}; load ${load.toFixed(2)} before`;
writeFileSync(path.join(values.out, `${name}.md`), `${report}\n\n${conditions}\n`);
for (const [file, svg] of Object.entries(charts)) writeFileSync(path.join(values.out, file), svg);
console.log(`${report}\n\n${conditions}`);
