/**
 * `node test/bench/long/longDoc.ts DIR [--out docs]`: writes the tables of OUT/long-contexts.md from DIR/long.json, as
 * `npm run bench -- long` leaves it. The result is kept in OUT/long-contexts/long.json and taken from there where DIR has none.
 * Notes written by hand into the document stay.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { keptResult } from '../keptResult.ts';
import { longText, type MeasuredLong } from './longText.ts';

const { values, positionals } = parseArgs({ allowPositionals: true, options: { out: { type: 'string', default: 'docs' } } });
const folder = path.join(values.out, 'long-contexts');
const kept = path.join(folder, 'long.json');
const file = [...positionals.map((dir) => path.join(dir, 'long.json')), kept].find((candidate) => existsSync(candidate));
if (!file || positionals.length > 1) {
  console.error('usage: node test/bench/long/longDoc.ts DIR [--out docs]; DIR/long.json is made by: npm run bench -- long --out DIR');
  process.exit(2);
}
const result = keptResult(JSON.parse(readFileSync(file, 'utf8')));
mkdirSync(folder, { recursive: true });
writeFileSync(kept, result);
const document = path.join(values.out, 'long-contexts.md');
writeFileSync(document, longText(JSON.parse(result) as MeasuredLong, existsSync(document) ? readFileSync(document, 'utf8') : ''));
console.log(document);
