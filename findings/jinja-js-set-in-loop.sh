#!/usr/bin/env bash
# Guess: @huggingface/jinja renders a chat template as transformers does with jinja2, or throws an error.
# What happens: a variable set in one round of a loop is still set in the next, so text of one turn gets into later
#   turns. In jinja2 each round starts anew. `strip('x')` ignores its argument, `-7 % 3` is -1, `3 > 2 == true` is
#   read from the left, `'1' == 1` is true and `[1] == [1]` false. All without an error.
# Seen: 2026-11-28, @huggingface/jinja 0.5.11 and jinja2 3.1.6 (Python 3.11, Node 20.20), lines as below.
# Why it matters: the first template marks the first turn. The prompt of the JavaScript side marks all turns, no check
#   of the model's files can see it, and the model answers a prompt that it was not trained on.
set -euo pipefail
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check jinja2==3.1.6
echo '{ "private": true, "type": "module" }' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts @huggingface/jinja@0.5.11

cat > templates.json <<'JSON'
[
  "{% for m in turns %}{% if loop.first %}{% set mark = '*' %}{% endif %}{{ mark }}{{ m }} {% endfor %}",
  "{% set last = '-' %}{% for m in turns %}{{ last }}{% set last = m %}{% endfor %} {{ last }}",
  "{{ 'xxhixx'.strip('x') }}",
  "{{ -7 % 3 }}",
  "{{ 'yes' if 3 > 2 == true else 'no' }}",
  "{{ 'same' if '1' == 1 else 'different' }}, {{ 'same' if [1] == [1] else 'different' }}"
]
JSON
cat > render.py <<'PY'
import json
from jinja2.sandbox import ImmutableSandboxedEnvironment

environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
for source in json.load(open("templates.json")):
    print(environment.from_string(source).render(turns=["one", "two", "three"]))
PY
cat > render.js <<'JS'
import { readFileSync } from 'node:fs';
import { Template } from '@huggingface/jinja';

for (const source of JSON.parse(readFileSync('templates.json', 'utf8')))
  console.log(new Template(source).render({ turns: ['one', 'two', 'three'] }));
JS

python/bin/python -c 'import jinja2, platform; print("jinja2", jinja2.__version__, "Python", platform.python_version())'
node -p '`@huggingface/jinja ${require("./node_modules/@huggingface/jinja/package.json").version} Node ${process.version}`'
{
  echo 'jinja2:'
  python/bin/python render.py
  echo '@huggingface/jinja:'
  node render.js
} > seen
cat seen
diff --unified - seen <<'TEXT'
jinja2:
*one two three 
--- -
hi
2
no
different, same
@huggingface/jinja:
*one *two *three 
-onetwo -
xxhixx
-1
yes
same, different
TEXT
echo 'as expected'
