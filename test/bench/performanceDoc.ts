/**
 * `node test/bench/performanceDoc.ts DIR [--out docs]`: writes OUT/performance.md and OUT/performance/*.svg from the results in DIR
 * (engine.json, engine-int4.json or int4/engine.json, ...). They are kept in OUT/performance/results, and what DIR lacks is taken from
 * there. Folders in there hold results of other processors, which the table of targets has beside these. Notes written by hand into
 * the document stay.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { keptResult } from './keptResult.ts';
import { COMMANDS, type Measured, performanceDoc } from './performanceText.ts';
import { hasAmx } from './processor.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { out: { type: 'string', default: 'docs' } },
});
const [from] = positionals;
if (from === undefined || positionals.length !== 1) {
  console.error('usage: node test/bench/performanceDoc.ts DIR [--out docs]');
  process.exit(2);
}

/** JSON has no NaN: what could not be measured is null there. */
function parsed(json: string): { machine: unknown; result: unknown } {
  const { machine, ...result } = JSON.parse(json, (key, value) =>
    value === null && key !== 'shares' && key !== 'features' ? Number.NaN : value,
  );
  return { machine, result };
}

const folder = path.join(values.out, 'performance');
const kept = path.join(folder, 'results');
mkdirSync(kept, { recursive: true });
const measured: Record<string, unknown> = {};
const missing: string[] = [];
for (const name of Object.keys(COMMANDS)) {
  const [suite, form] = name.split(/-(.*)/);
  const file = [`${name}.json`, ...(form ? [`${form}/${suite}.json`] : [])]
    .map((candidate) => path.join(from, candidate))
    .concat(path.join(kept, `${name}.json`))
    .find((candidate) => existsSync(candidate));
  if (!file) {
    missing.push(name);
    continue;
  }
  const json = keptResult(JSON.parse(readFileSync(file, 'utf8')));
  writeFileSync(path.join(kept, `${name}.json`), json);
  measured[name] = parsed(json);
}
if (Object.keys(measured).length === 0) {
  console.error(`${from} has no results; one is made by: ${COMMANDS.engine}`);
  process.exit(1);
}

const others = readdirSync(kept, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(
    ({ name }) =>
      Object.fromEntries(
        Object.keys(COMMANDS)
          .map((suite) => [suite, path.join(kept, name, `${suite}.json`)] as const)
          .filter(([, file]) => existsSync(file))
          .map(([suite, file]) => [suite, parsed(readFileSync(file, 'utf8'))]),
      ) as Measured,
  );

const document = path.join(values.out, 'performance.md');
const { text, charts, withoutNote } = performanceDoc(measured as Measured, {
  before: existsSync(document) ? readFileSync(document, 'utf8') : '',
  amx: Object.values(measured as Measured).some(({ machine }) => hasAmx(machine)),
  others,
});
for (const file of readdirSync(folder)) if (file.endsWith('.svg') && !charts[file]) rmSync(path.join(folder, file));
for (const [file, svg] of Object.entries(charts)) writeFileSync(path.join(folder, file), svg);
writeFileSync(document, text);
console.log(`${document}, ${Object.keys(charts).length} charts`);
if (missing.length) console.log(`no results of: ${missing.join(', ')}`);
if (withoutNote.length) console.log(`not reached, and no note says what holds it: ${withoutNote.join(', ')}`);
