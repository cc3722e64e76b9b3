/**
 * `node test/bench/eviction/evictionDoc.ts DIR [--out docs]`: writes OUT/eviction.md and OUT/eviction/*.svg from DIR/eviction.json, as
 * `npm run bench -- eviction` leaves it. The result is kept in OUT/eviction and taken from there where DIR has none. Notes written
 * by hand into the document stay.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Machine } from '../performanceTargets.ts';
import type { EvictionBench } from './evictionBench.ts';
import { evictionCharts } from './evictionReport.ts';
import { evictionText } from './evictionText.ts';

const { values, positionals } = parseArgs({ allowPositionals: true, options: { out: { type: 'string', default: 'docs' } } });
const folder = path.join(values.out, 'eviction');
const kept = path.join(folder, 'eviction.json');
const file = [...positionals.map((dir) => path.join(dir, 'eviction.json')), kept].find((candidate) => existsSync(candidate));
if (!file || positionals.length > 1) {
  console.error('usage: node test/bench/eviction/evictionDoc.ts DIR [--out docs]; DIR/eviction.json is made by: npm run bench -- eviction --out DIR');
  process.exit(2);
}
const measured = JSON.parse(readFileSync(file, 'utf8')) as EvictionBench & { machine: Machine };
mkdirSync(folder, { recursive: true });
writeFileSync(kept, `${JSON.stringify(measured)}\n`);
const document = path.join(values.out, 'eviction.md');
for (const [name, svg] of Object.entries(evictionCharts(measured))) writeFileSync(path.join(folder, name), svg);
writeFileSync(document, evictionText(measured, measured.machine, existsSync(document) ? readFileSync(document, 'utf8') : ''));
console.log(document);
