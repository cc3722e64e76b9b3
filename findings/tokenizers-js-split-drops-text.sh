#!/usr/bin/env bash
# Guess: @huggingface/tokenizers reads a tokenizer.json as the Rust library does, or refuses what it does not know.
# What happens: an inverted Split drops the text between its matches: "x1 22 y" has the tokens of "x" and "y" only.
#   Merged and contiguous Splits are read as isolated ones, Punctuation always as contiguous. No error.
# Seen: 2026-11-28, @huggingface/tokenizers 0.2.0 and tokenizers 0.23.3 (Python 3.11, Node 20.20), lines as below.
# Why it matters: the prompt loses code or gets ids that the model never saw. A test that encodes one sentence passes.
set -euo pipefail
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check tokenizers==0.23.3
echo '{ "private": true, "type": "module" }' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts @huggingface/tokenizers@0.2.0

# Writes one tokenizer.json per case and prints what the Rust library makes of its text.
cat > reference.py <<'PY'
import json
from tokenizers import Regex, Tokenizer, models, pre_tokenizers as pre

# A token for each piece that either side can make, so that the tokens show the pieces.
PIECES = ["x", "y", "1 22 ", "a", "-", "b", "--", "a-", "-b", "!", "!!"]
CASES = [
    ("x1 22 y", pre.Split(Regex("[a-z]+"), "isolated", invert=True)),
    ("a--b", pre.Split(Regex("-"), "contiguous")),
    ("a-b", pre.Split(Regex("-"), "merged_with_next")),
    ("a!!", pre.Punctuation("isolated")),
]
model = models.WordLevel({piece: i for i, piece in enumerate(["?", *PIECES])}, unk_token="?")
texts = []
for i, (text, pre_tokenizer) in enumerate(CASES):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.save(f"{i}.json")
    texts.append(text)
    print(json.dumps(text), " ".join(f"[{token}]" for token in tokenizer.encode(text).tokens))
json.dump(texts, open("texts.json", "w"))
PY
cat > same.js <<'JS'
import { readFileSync } from 'node:fs';
import { Tokenizer } from '@huggingface/tokenizers';

const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
for (const [i, text] of read('texts.json').entries()) {
  const { tokens } = new Tokenizer(read(`${i}.json`), {}).encode(text);
  console.log(JSON.stringify(text), tokens.map((token) => `[${token}]`).join(' '));
}
JS

python/bin/python -c 'import tokenizers, platform; print("tokenizers", tokenizers.__version__, "Python", platform.python_version())'
node -p '`@huggingface/tokenizers ${require("./node_modules/@huggingface/tokenizers/package.json").version} Node ${process.version}`'
{
  echo 'tokenizers:'
  python/bin/python reference.py
  echo '@huggingface/tokenizers:'
  node same.js
} > seen
cat seen
diff --unified - seen <<'TEXT'
tokenizers:
"x1 22 y" [x] [1 22 ] [y]
"a--b" [a] [--] [b]
"a-b" [a] [-b]
"a!!" [a] [!] [!]
@huggingface/tokenizers:
"x1 22 y" [x] [y]
"a--b" [a] [-] [-] [b]
"a-b" [a] [-] [b]
"a!!" [a] [!!]
TEXT
echo 'as expected'
