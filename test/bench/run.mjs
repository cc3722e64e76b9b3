// Benchmarks: `npm run bench -- SUITE --out DIR`. Writes DIR/SUITE.json with everything and DIR/SUITE.md with the table, which is
// printed, too, together with the machine that it was measured on.
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
};

const { values, positionals } = parseArgs({ allowPositionals: true, options: { out: { type: 'string' } } });
const [name] = positionals;
if (positionals.length !== 1 || !Object.hasOwn(suites, name) || !values.out) {
  console.error(`usage: npm run bench -- SUITE --out DIR; SUITE is one of ${Object.keys(suites).join(', ')}`);
  process.exit(2);
}
const load = loadavg()[0];
const { result, report } = await suites[name]();
const machine = { cpu: cpus()[0]?.model.trim(), processors: cpus().length, memoryBytes: totalmem(), platform: `${process.platform}-${process.arch}`, node: process.version, loadBefore: load, loadAfter: loadavg()[0], date: new Date().toISOString() };
mkdirSync(values.out, { recursive: true });
writeFileSync(path.join(values.out, `${name}.json`), `${JSON.stringify({ machine, ...result }, null, 1)}\n`);
const conditions = `${machine.cpu}, ${machine.processors} processors, ${(machine.memoryBytes / 2 ** 30).toFixed(0)} GiB, ${machine.platform}, Node ${machine.node}; load ${load.toFixed(2)} before`;
writeFileSync(path.join(values.out, `${name}.md`), `${report}\n\n${conditions}\n`);
console.log(`${report}\n\n${conditions}`);
