"""Bits per byte on the held-out projects, and what a token of a middle costs.

Usage: validate.py build HELDOUT_JSONL TOKENIZER_JSON OUT_NPZ
       validate.py run   OUT_NPZ MODEL...        (a folder with model.safetensors, or a checkpoint)
"""
import json, math, os, random, sys
import numpy as np, torch

T = 1024
LANGS = ("ts", "py")


def build(src, tokf, out, files=120, middles=250):
    """Fix the items: beginnings of files and completions in the product's layout, with fixed seeds."""
    from tokenizers import Tokenizer
    from controls import PAD, short_path
    from layouts import Encoder, completion
    enc = Encoder(Tokenizer.from_file(tokf))
    r = random.Random(7)
    D = {lang: [] for lang in LANGS}
    for l in open(src):
        d = json.loads(l)
        if d["lang"] in D and "<|" not in d["t"]:
            D[d["lang"]].append(d)
    for v in D.values():
        r.shuffle(v)
    rows = {}
    for lang, ds in D.items():
        ids, first, size = [], [], []
        for d in ds[:files]:
            h = enc.head(d["path"])
            x = (h + enc.ids(d["t"]))[:T]
            ids.append(x + [PAD] * (T - len(x)))
            first.append(len(h))
            size.append(len(enc.tok.decode(x[len(h):]).encode()))
        rows[f"{lang}_plain"], rows[f"{lang}_first"], rows[f"{lang}_bytes"] = np.array(ids, np.uint16), np.array(first), np.array(size)
        ids, mid = [], []
        r = random.Random(11)
        while len(ids) < middles:
            d = r.choice(ds)
            doc = completion(enc, r, {**d, "path": short_path(d["path"], random.Random(1))}, T - 1)
            if doc and len(doc[-1][0]) > 1:
                x = [i for part, _ in doc for i in part]
                ids.append(x + [PAD] * (T - len(x)))
                mid.append((len(x) - len(doc[-1][0]), len(x) - 1))
        rows[f"{lang}_completion"], rows[f"{lang}_middle"] = np.array(ids, np.uint16), np.array(mid)
    np.savez(out, **rows)


@torch.no_grad()
def losses(m, ids, counted):
    """Sum of the cross entropies (nats) of the tokens behind the first of each row where `counted` [n, T - 1] says so; ids [n, T]."""
    total = 0.0
    for i in range(0, len(ids), 4):
        x, c = torch.from_numpy(ids[i:i + 4].astype(np.int64)), torch.from_numpy(counted[i:i + 4])
        # no longer than what counts, in lengths that our kernels take
        n = -(-(int(c.any(0).nonzero().max()) + 1) // 64) * 64
        with torch.autocast("cpu", torch.bfloat16):
            logits = torch.nn.functional.linear(m(x[:, :n])[:, :c.shape[1]][c[:, :n]], m.embed.weight.to(torch.bfloat16)).float()
        total += torch.nn.functional.cross_entropy(logits, x[:, 1:][c], reduction="sum").item()
    return total


def measure(m, val, part=1):
    """{lang: bits per byte of plain files, nats per token of middles}; of every `part`-th item only."""
    from controls import PAD
    told = {}
    for lang in LANGS:
        ids, first = val[f"{lang}_plain"][::part], val[f"{lang}_first"][::part]
        at = np.arange(1, ids.shape[1])
        bits = losses(m, ids, (at >= first[:, None]) & (ids[:, 1:] != PAD)) / math.log(2)
        cs, mid = val[f"{lang}_completion"][::part], val[f"{lang}_middle"][::part]
        inside = (at >= mid[:, :1]) & (at < mid[:, 1:])
        told[lang] = {"bits_per_byte": round(bits / float(val[f"{lang}_bytes"][::part].sum()), 4), "middle": round(losses(m, cs, inside) / float(inside.sum()), 4)}
    return told


def main(valf, *models):
    from model import Model
    from weights import load_weights, shape_of
    val = np.load(valf)
    for name in models:
        m = Model(shape_of(name)).eval()
        m.load_state_dict(load_weights(name))
        print(name, json.dumps(measure(m, val)), flush=True)


if __name__ == "__main__":
    {"build": build, "run": main}[sys.argv[1]](*sys.argv[2:])
