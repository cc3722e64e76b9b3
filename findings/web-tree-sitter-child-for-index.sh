#!/usr/bin/env bash
# Guess: `TreeCursor.gotoFirstChildForIndex(i)` of web-tree-sitter goes to the first child that reaches beyond index i,
#   as the C function of the same purpose does, and returns whether there is one.
# What happens: it goes to the first child, whatever i is, and returns false although it moved. So a walk down to a place
#   in a file ends after one step, at the file's first statement.
# Seen: 2026-11-28, web-tree-sitter 0.27.1 with tree-sitter-javascript 0.25.0 (Node 20.20), lines as below.
# Why it matters: the step is the fast way to a name in a long file, and nothing throws. A loop with
#   `gotoFirstChild` and `gotoNextSibling` gets there.
set -euo pipefail
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

echo '{ "private": true, "type": "module" }' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts --legacy-peer-deps web-tree-sitter@0.27.1 tree-sitter-javascript@0.25.0

cat > walk.js <<'JS'
import { Language, Parser } from 'web-tree-sitter';

await Parser.init();
const language = await Language.load('node_modules/tree-sitter-javascript/tree-sitter-javascript.wasm');
const text = 'one; two; three;';
const cursor = new Parser().setLanguage(language).parse(text).walk();
for (const word of ['one', 'two', 'three']) {
  const at = text.indexOf(word);
  cursor.reset(cursor.currentNode.tree.rootNode);
  const returned = cursor.gotoFirstChildForIndex(at);
  console.log(`child for index ${at}: returned ${returned}, at ${cursor.nodeText}`);
}
JS
node -p '`web-tree-sitter ${require("./node_modules/web-tree-sitter/package.json").version} Node ${process.version}`'
node walk.js > seen
cat seen
diff --unified - seen <<'TEXT'
child for index 0: returned false, at one;
child for index 5: returned false, at one;
child for index 10: returned false, at one;
TEXT
