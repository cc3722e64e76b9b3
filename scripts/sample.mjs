// The sample folder of `npm start`: files of this project that import nothing else, so that the editor finds no error in
// them. Does not open an editor.
import { cpSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const FILES = [
  'README.md',
  'engine/text/syntax/sourceDocument.ts',
  'engine/text/tokenizer/vocabulary.ts',
  'engine/text/tokenizer/spelling.ts',
  'engine/text/tokenizer/tokenizerJson.ts',
  'engine/protocol/errors.ts',
  'engine/protocol/formatBytes.ts',
  'engine/protocol/oneLine.ts',
  'engine/protocol/tasks.ts',
  'src/format.ts',
];
/** The file in front. The built-in model completes it well. */
const FRONT = 'engine/text/syntax/sourceDocument.ts';
const TSCONFIG = {
  compilerOptions: {
    target: 'ES2023',
    lib: ['ES2023', 'DOM'],
    module: 'preserve',
    moduleResolution: 'bundler',
    allowImportingTsExtensions: true,
    noEmit: true,
    strict: true,
    types: [],
  },
};

/** Writes the sample into a folder. Returns the path of the file in front. */
export function writeSample(folder) {
  for (const name of FILES) cpSync(name, path.join(folder, name));
  writeFileSync(path.join(folder, 'tsconfig.json'), `${JSON.stringify(TSCONFIG, null, 2)}\n`);
  return path.join(folder, FRONT);
}
