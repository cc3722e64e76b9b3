#!/usr/bin/env bash
# Guess: a TypeScript grammar marks `if (e: any) {}` as an error, as the compiler does ("')' expected").
# What happens: the tree has no error. A type is accepted behind an expression in any parentheses, also in an argument.
# Seen: 2026-11-29, tree-sitter-typescript of @vscode/tree-sitter-wasm 0.3.1 with web-tree-sitter 0.27.1, TypeScript
#   6.0.3 (Node 20.20), lines as below.
# Why it matters: who asks the tree whether generated code is correct does not see this fault. Small models write it
#   when they take a condition for a list of parameters.
set -euo pipefail
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

echo '{ "private": true, "type": "module" }' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts --legacy-peer-deps web-tree-sitter@0.27.1 @vscode/tree-sitter-wasm@0.3.1 typescript@6.0.3

cat > read.js <<'JS'
import ts from 'typescript';
import { Language, Parser } from 'web-tree-sitter';

await Parser.init();
const language = await Language.load('node_modules/@vscode/tree-sitter-wasm/wasm/tree-sitter-typescript.wasm');
const parser = new Parser().setLanguage(language);
for (const text of ['if (e) {}', 'if (e: any) {}', 'f((e: any));', 'if (e any) {}']) {
  const { parseDiagnostics } = ts.createSourceFile('a.ts', text, ts.ScriptTarget.Latest);
  console.log(`${text}  compiler: ${parseDiagnostics.length} errors, tree has an error: ${parser.parse(text).rootNode.hasError}`);
}
JS
node -p '`Node ${process.version}`'
node read.js > seen
cat seen
diff --unified - seen <<'TEXT'
if (e) {}  compiler: 0 errors, tree has an error: false
if (e: any) {}  compiler: 3 errors, tree has an error: false
f((e: any));  compiler: 1 errors, tree has an error: false
if (e any) {}  compiler: 2 errors, tree has an error: true
TEXT
