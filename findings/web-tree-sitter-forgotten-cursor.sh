#!/usr/bin/env bash
# Guess: `delete()` of a TreeCursor of web-tree-sitter only frees its memory early. The package registers each cursor
#   with a FinalizationRegistry, so a forgotten one is freed when it is collected.
# What happens: what it registers is the address of the tree, not the cursor. The function that frees cursors takes the
#   cursor from a buffer that all calls share. So the collection of a forgotten cursor frees the memory of whichever
#   cursor was used last. Trees and parsers register their own addresses, and may be forgotten.
# Seen: 2026-11-29, web-tree-sitter 0.27.1 with tree-sitter-javascript 0.25.0 (Node 20.20), lines as below. The script
#   only records what is registered, and deletes everything itself.
# Why it matters: the error comes later, at random, and in other code: a walk ends early, or reads out of bounds. One
#   forgotten cursor in one test made 55 tests of other files fail, once in four runs.
set -euo pipefail
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

echo '{ "private": true, "type": "module" }' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts --legacy-peer-deps web-tree-sitter@0.27.1 tree-sitter-javascript@0.25.0

cat > registered.js <<'JS'
const held = new Map();
const Real = globalThis.FinalizationRegistry;
globalThis.FinalizationRegistry = class extends Real {
  register(object, value, token) {
    held.set(object, value);
    return super.register(object, value, token);
  }
};
const { Language, Parser } = await import('web-tree-sitter');

await Parser.init();
const language = await Language.load('node_modules/tree-sitter-javascript/tree-sitter-javascript.wasm');
const parser = new Parser().setLanguage(language);
const tree = parser.parse('one; two;');
const cursors = [tree.walk(), tree.walk()];
cursors[1].gotoFirstChild();
// The address of an object is its field 0.
console.log('a tree registers its own address:', held.get(tree) === tree[0]);
console.log('a cursor registers its own address:', cursors.some((cursor) => held.get(cursor) === cursor[0]));
console.log('a cursor registers the address of the tree:', cursors.every((cursor) => held.get(cursor) === tree[0]));
for (const object of [...cursors, tree, parser]) object.delete();
JS
node -p '`web-tree-sitter ${require("./node_modules/web-tree-sitter/package.json").version} Node ${process.version}`'
node registered.js > seen
cat seen
diff --unified - seen <<'TEXT'
a tree registers its own address: true
a cursor registers its own address: false
a cursor registers the address of the tree: true
TEXT
