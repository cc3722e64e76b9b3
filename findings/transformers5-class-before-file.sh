#!/usr/bin/env bash
# Guess: transformers 5 tokenizes as tokenizer.json says; the class named in tokenizer_config.json only adds methods.
# What happens: for some class names (GPT2Tokenizer, GPTNeoXTokenizer, Qwen2Tokenizer) it takes the vocabulary and the
#   merges from the file and makes the pre-tokenizer anew. The file's own rule for digits is lost, in both directions.
#   For PreTrainedTokenizerFast and LlamaTokenizer the rule stays. No warning.
# Seen: 2026-11-28, transformers 5.24.0, tokenizers 0.23.3, Python 3.11, lines as below.
# Why it matters: two engines that read the same folder build other prompts. One that follows the file (Rust, the
#   JavaScript libraries) cannot be checked against transformers unless the class is generic.
set -euo pipefail
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check transformers==5.24.0 tokenizers==0.23.3

cat > load.py <<'PY'
import json, os
from tokenizers import Tokenizer, decoders, models, pre_tokenizers as pre
from transformers import AutoTokenizer

# Tokens for all bytes, and one for "12". The first file's rule never makes it: there each digit is a token.
vocabulary = {piece: i for i, piece in enumerate([*sorted(pre.ByteLevel.alphabet()), "12"])}
together = pre.ByteLevel(add_prefix_space=False)
apart = pre.Sequence([pre.Digits(individual_digits=True), together])
for rule, names in {
    apart: ["PreTrainedTokenizerFast", "LlamaTokenizer", "GPT2Tokenizer", "GPTNeoXTokenizer"],
    together: ["PreTrainedTokenizerFast", "LlamaTokenizer", "Qwen2Tokenizer"],
}.items():
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[("1", "2")]))
    tokenizer.pre_tokenizer = rule
    tokenizer.decoder = decoders.ByteLevel()
    print("tokenizer.json:", *tokenizer.encode("a12").tokens)
    for name in names:
        os.makedirs(name, exist_ok=True)
        tokenizer.save(f"{name}/tokenizer.json")
        with open(f"{name}/tokenizer_config.json", "w") as file:
            json.dump({"tokenizer_class": name}, file)
        print(f"  {name}:", *AutoTokenizer.from_pretrained(name).tokenize("a12"))
PY

python/bin/python -c 'import os, platform
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import tokenizers, transformers
print("transformers", transformers.__version__, "tokenizers", tokenizers.__version__, "Python", platform.python_version())'
TRANSFORMERS_VERBOSITY=error HF_HUB_OFFLINE=1 python/bin/python load.py > seen
cat seen
diff --unified - seen <<'TEXT'
tokenizer.json: a 1 2
  PreTrainedTokenizerFast: a 1 2
  LlamaTokenizer: a 1 2
  GPT2Tokenizer: a 12
  GPTNeoXTokenizer: a 12
tokenizer.json: a 12
  PreTrainedTokenizerFast: a 12
  LlamaTokenizer: a 12
  Qwen2Tokenizer: a 1 2
TEXT
echo 'as expected'
