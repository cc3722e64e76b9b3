/**
 * `node test/bench/strategies/strategiesDoc.ts DIR [--out docs]`: writes OUT/strategies.md and OUT/strategies/*.svg from the
 * results in DIR (strategies.json, tiers.json, heads.json). They are kept in OUT/strategies/results, with a CSV of the answers, and
 * what DIR lacks is taken from there. Notes written by hand into the document stay.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { keptResult } from '../keptResult.ts';
import { strategiesCsv } from './strategiesReport.ts';
import { type StrategiesResults, strategiesDoc, SUITES } from './strategiesText.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { out: { type: 'string', default: 'docs' } },
});
const [from] = positionals;
if (from === undefined || positionals.length !== 1) {
  console.error('usage: node test/bench/strategies/strategiesDoc.ts DIR [--out docs]');
  process.exit(2);
}

const folder = path.join(values.out, 'strategies');
const kept = path.join(folder, 'results');
mkdirSync(kept, { recursive: true });
const measured: Record<string, unknown> = {};
for (const name of SUITES) {
  const file = [from, kept].map((dir) => path.join(dir, `${name}.json`)).find((candidate) => existsSync(candidate));
  if (!file) {
    console.error(
      `${from} has no ${name}.json, and neither has ${kept}; it is made by: npm run bench -- ${name} --out ${from}`,
    );
    process.exit(1);
  }
  const json = keptResult(JSON.parse(readFileSync(file, 'utf8')));
  writeFileSync(path.join(kept, `${name}.json`), json);
  const { machine, ...result } = JSON.parse(json);
  measured[name] = { machine, result };
}

const document = path.join(values.out, 'strategies.md');
const results = measured as unknown as StrategiesResults;
writeFileSync(path.join(kept, 'strategies.csv'), strategiesCsv(results.strategies.result.records));
const { text, charts } = strategiesDoc(results, existsSync(document) ? readFileSync(document, 'utf8') : '');
for (const [file, svg] of Object.entries(charts)) writeFileSync(path.join(folder, file), svg);
writeFileSync(document, text);
console.log(`${document}, ${Object.keys(charts).length} charts`);
