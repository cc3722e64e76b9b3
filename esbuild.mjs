// Bundles: dist/extension.js, dist/worker.js, dist/cli.js (CommonJS, Node) and the webview scripts under dist/webview/.
import { existsSync } from 'node:fs';
import { build } from 'esbuild';

const shared = { bundle: true, logLevel: process.argv.includes('--quiet') ? 'error' : 'info', target: 'node20', sourcemap: false, minify: process.argv.includes('--minify'), legalComments: 'linked' };
const node = { ...shared, platform: 'node', format: 'cjs', external: ['vscode', 'onnxruntime-node'] };
const entries = [
  { ...node, entryPoints: ['src/extension.ts'], outfile: 'dist/extension.js' },
  { ...node, entryPoints: ['engine/worker.ts'], outfile: 'dist/worker.js' },
  { ...node, entryPoints: ['engine/cli.ts'], outfile: 'dist/cli.js', banner: { js: '#!/usr/bin/env node' } },
  { ...shared, platform: 'browser', format: 'iife', target: 'es2022', entryPoints: ['src/webview/chat.ts'], outfile: 'dist/webview/chat.js' },
];
await Promise.all(entries.filter((e) => existsSync(e.entryPoints[0])).map((e) => build(e)));
