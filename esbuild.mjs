// Bundles: dist/extension.js, dist/worker.js, dist/cli.js (CommonJS, Node), the webview script under dist/webview/, the
// grammars under dist/grammars/, and the licences of everything in them: dist/THIRD_PARTY_NOTICES.txt.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { placeFile } from './scripts/placeFile.mjs';

const shared = {
  bundle: true,
  metafile: true,
  logLevel: process.argv.includes('--quiet') ? 'error' : 'info',
  target: 'node20',
  minify: process.argv.includes('--minify'),
  legalComments: 'none',
  // engine/model/native/addon.ts reads it only where there is no bundle.
  logOverride: { 'empty-import-meta': 'silent' },
};
const node = {
  ...shared,
  platform: 'node',
  format: 'cjs',
  external: ['vscode', 'onnxruntime-node'],
  alias: { 'web-tree-sitter': './node_modules/web-tree-sitter/web-tree-sitter.cjs' },
};
const entries = [
  { ...node, entryPoints: ['src/extension.ts'], outfile: 'dist/extension.js' },
  { ...node, entryPoints: ['engine/server/worker.ts'], outfile: 'dist/worker.js' },
  { ...node, entryPoints: ['engine/server/machineProbe.ts'], outfile: 'dist/machineProbe.js' },
  { ...node, entryPoints: ['engine/cli/main.ts'], outfile: 'dist/cli.js', banner: { js: '#!/usr/bin/env node' } },
  {
    ...shared,
    platform: 'browser',
    format: 'iife',
    target: 'es2022',
    entryPoints: ['src/webview/chatWebview.ts'],
    outfile: 'dist/webview/chat.js',
  },
  {
    ...shared,
    platform: 'browser',
    format: 'iife',
    target: 'es2022',
    entryPoints: ['src/webview/cacheWebview.ts'],
    outfile: 'dist/webview/cache.js',
  },
];
const results = await Promise.all(entries.map((entry) => build(entry)));

// engine/text/syntax/syntaxTrees.ts loads these on first use.
const grammars = 'node_modules/@vscode/tree-sitter-wasm';
mkdirSync('dist/grammars', { recursive: true });
placeFile('node_modules/web-tree-sitter/web-tree-sitter.wasm', 'dist/grammars/web-tree-sitter.wasm');
for (const file of readdirSync(`${grammars}/wasm`))
  if (/^tree-sitter-(?!ini\b|regex\b).*\.wasm$/.test(file))
    placeFile(`${grammars}/wasm/${file}`, `dist/grammars/${file}`);

// engine/model/native/addon.ts loads the one of this platform.
mkdirSync('dist/native', { recursive: true });
for (const file of readdirSync('engine/native/prebuilt'))
  placeFile(`engine/native/prebuilt/${file}`, `dist/native/${file}`);

// These travel beside the bundles rather than in them.
const packages = new Set(['node_modules/onnxruntime-node', 'node_modules/onnxruntime-common', grammars]);
for (const { metafile } of results)
  for (const input of Object.keys(metafile.inputs)) {
    const found = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input);
    if (found) packages.add(found[0]);
  }

const MIT =
  'Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:\n\nThe above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.\n\nTHE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.';
const APACHE = 'Apache License 2.0; its text is in the file LICENSE of this package.';

function notice(dir) {
  const { name, version, license, author } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'));
  const files = readdirSync(dir).filter(
    (file) => /^(licen[cs]e|notice|copying)/i.test(file) && !/\.(js|ts)$/.test(file),
  );
  const texts = files.map((file) => readFileSync(join(dir, file), 'utf8').trim());
  const holder = name.startsWith('onnxruntime')
    ? 'Microsoft Corporation'
    : typeof author === 'string'
      ? author
      : (author?.name ?? `the authors of ${name}`);
  // Some packages name their licence but leave its text out.
  if (!texts.length && license === 'MIT') texts.push(`Copyright (c) ${holder}\n\n${MIT}`);
  if (!texts.length && /Apache-2\.0/.test(license)) texts.push(`Copyright ${holder}\n\n${APACHE}`);
  if (!texts.length) throw new Error(`${name}: no licence text is known`);
  return `${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`;
}

const notices = [...packages]
  .filter((dir) => existsSync(join(dir, 'package.json')))
  .sort()
  .map(notice);
writeFileSync(
  'dist/THIRD_PARTY_NOTICES.txt',
  `Kvasir contains the following software of others.\n\n${notices.join(`\n${'-'.repeat(80)}\n\n`)}`,
);
