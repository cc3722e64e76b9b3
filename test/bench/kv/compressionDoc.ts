/**
 * `node test/bench/kv/compressionDoc.ts DIR [--out docs]`: writes OUT/compression.md and OUT/compression/*.svg from DIR/kv.json, as
 * `npm run bench -- kv --only quality,rows` leaves it. The result is kept in OUT/compression/kv.json, and of the two parts what DIR
 * lacks is taken from there. Notes written by hand into the document stay.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { keptResult } from '../keptResult.ts';
import { compressionText, type MeasuredQuality } from './compressionText.ts';

const { values, positionals } = parseArgs({ allowPositionals: true, options: { out: { type: 'string', default: 'docs' } } });
const folder = path.join(values.out, 'compression');
const kept = path.join(folder, 'kv.json');
const files = [...positionals.map((dir) => path.join(dir, 'kv.json')), kept].filter((candidate) => existsSync(candidate));
const found = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as Partial<MeasuredQuality>);
const [ofQuality, ofRows] = [found.find(({ quality }) => quality && 'starter' in quality), found.find(({ rows }) => rows)];
if (!ofQuality || !ofRows || positionals.length > 1) {
  console.error('usage: node test/bench/kv/compressionDoc.ts DIR [--out docs]; DIR/kv.json is made by: npm run bench -- kv --only quality,rows --out DIR');
  process.exit(2);
}
const result = keptResult({ machine: ofQuality.machine, quality: ofQuality.quality, rows: ofRows.rows });
mkdirSync(folder, { recursive: true });
writeFileSync(kept, result);
const document = path.join(values.out, 'compression.md');
const { text, charts } = compressionText(JSON.parse(result) as MeasuredQuality, existsSync(document) ? readFileSync(document, 'utf8') : '');
for (const [name, svg] of Object.entries(charts)) writeFileSync(path.join(folder, name), svg);
writeFileSync(document, text);
console.log(`${document}, ${Object.keys(charts).length} charts`);
