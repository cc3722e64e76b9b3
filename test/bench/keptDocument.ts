/**
 * Scripts that write a document from the result of one suite: `node SCRIPT DIR [--out docs]` takes DIR/SUITE.json, as
 * `npm run bench -- SUITE` leaves it, keeps it in OUT/NAME/SUITE.json, and takes it from there where DIR has none. Notes written by
 * hand into the document stay.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { keptResult } from './keptResult.ts';

export interface KeptDocument<Result> {
  /** OUT/NAME.md, with what belongs to it in OUT/NAME. */
  name: string;
  suite: string;
  /** Of `npm run bench -- SUITE`, beside --out. */
  options?: string;
  /** What is kept of the results that there are, DIR's first; undefined where something lacks. */
  keep: (results: readonly Partial<Result>[]) => Result | undefined;
  /** @param before the document as it was, "" if there is none */
  write: (result: Result, before: string) => { text: string; charts?: Record<string, string> };
}

/** Ends the process with a line on how to call it where there is no result. */
export function writeDocument<Result>({ name, suite, options = '', keep, write }: KeptDocument<Result>): void {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { out: { type: 'string', default: 'docs' } },
  });
  const folder = path.join(values.out, name);
  const kept = path.join(folder, `${suite}.json`);
  const files = [...positionals.map((dir) => path.join(dir, `${suite}.json`)), kept].filter((file) => existsSync(file));
  const result = keep(files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as Partial<Result>));
  if (!result || positionals.length > 1) {
    console.error(
      `usage: node ${path.relative('', process.argv[1]!)} DIR [--out docs]; DIR/${suite}.json is made by: npm run bench -- ${suite}${options && ` ${options}`} --out DIR`,
    );
    process.exit(2);
  }
  const json = keptResult(result);
  mkdirSync(folder, { recursive: true });
  writeFileSync(kept, json);
  const document = path.join(values.out, `${name}.md`);
  const { text, charts = {} } = write(
    JSON.parse(json) as Result,
    existsSync(document) ? readFileSync(document, 'utf8') : '',
  );
  for (const [file, svg] of Object.entries(charts)) writeFileSync(path.join(folder, file), svg);
  writeFileSync(document, text);
  console.log([document, ...Object.keys(charts)].join(', '));
}

/** Of results that are kept whole: the first. */
export function first<Result>([result]: readonly Partial<Result>[]): Result | undefined {
  return result as Result | undefined;
}
