#!/usr/bin/env bash
# Guess: a NaN in the input of an ONNX operator either wins everywhere or is skipped everywhere.
# What happens: ArgMax names the NaN wherever it is. ReduceMax returns it only from the first place and skips it in the
#   others, so the greatest value is not the one at ArgMax. DynamicQuantizeLinear, the first step of int8 models, skips
#   it for the range and codes it as the number 0.
# Seen: 2026-11-28, onnxruntime-node 1.30.0, Node 20.20, linux-x64, lines as below.
# Why it matters: a broken activation in a quantised model becomes a plausible number, so a check of the logits for NaN
#   finds nothing. Where a NaN gets through, a sampler with ArgMax writes the same wrong token for ever.
set -euo pipefail
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

# Install scripts would fetch CUDA files; the CPU library is in the package.
echo '{ "private": true, "type": "module" }' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts onnxruntime-node@1.30.0

cat > operators.js <<'JS'
import ort from 'onnxruntime-node';

// An ONNX model with one operator on four float32 numbers, as protobuf: tag, length, content.
const message = (field, ...content) => [field * 8 + 2, content.flat().length, ...content.flat()];
const number = (field, value) => [field * 8, value];
const text = (field, value) => message(field, [...Buffer.from(value)]);
const value = ([name, type, ...shape]) => {
  const dims = shape.map((size) => message(1, number(1, size)));
  return [text(1, name), message(2, message(1, number(1, type), message(2, ...dims)))].flat();
};
const [FLOAT, UINT8, INT64] = [1, 2, 7];

async function sessionOf(operator, ...outputs) {
  const node = message(1, text(1, 'x'), ...outputs.map(([name]) => text(2, name)), text(4, operator));
  const ends = [message(11, value(['x', FLOAT, 4])), ...outputs.map((output) => message(12, value(output)))];
  const model = [number(1, 9), message(8, number(2, 17)), message(7, node, text(2, 'g'), ...ends)];
  return ort.InferenceSession.create(Uint8Array.from(model.flat()));
}

const argMax = await sessionOf('ArgMax', ['y', INT64, 1]);
const reduceMax = await sessionOf('ReduceMax', ['y', FLOAT, 1]);
const quantise = await sessionOf('DynamicQuantizeLinear', ['y', UINT8, 4], ['scale', FLOAT], ['zero', UINT8]);
for (const numbers of [[1, 5, 3, 2], [1, 5, NaN, 2], [NaN, 5, 3, 2]]) {
  const feeds = { x: new ort.Tensor('float32', Float32Array.from(numbers), [4]) };
  const at = (await argMax.run(feeds)).y.data[0];
  const most = (await reduceMax.run(feeds)).y.data[0];
  const { y, scale, zero } = await quantise.run(feeds);
  const back = [...y.data].map((code) => ((code - zero.data[0]) * scale.data[0]).toFixed(1));
  console.log(`${numbers.join(' ')}: ArgMax ${at}, ReduceMax ${most}, quantised and back ${back.join(' ')}`);
}
JS

node -p '`onnxruntime-node ${require("./node_modules/onnxruntime-node/package.json").version} Node ${process.version} ${process.platform}-${process.arch}`'
node operators.js > seen
cat seen
diff --unified - seen <<'TEXT'
1 5 3 2: ArgMax 1, ReduceMax 5, quantised and back 1.0 5.0 3.0 2.0
1 5 NaN 2: ArgMax 2, ReduceMax 5, quantised and back 1.0 5.0 0.0 2.0
NaN 5 3 2: ArgMax 0, ReduceMax NaN, quantised and back 0.0 5.0 3.0 2.0
TEXT
echo 'as expected'
