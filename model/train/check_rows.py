"""Checks on a processor what the accelerator's trainer rests on: the mask of documents in a row against plain attention, and that a packed corpus comes out as it went in. Usage: check_rows.py

Takes seconds. Ends with an error where anything differs.
"""
import json, os, tempfile
import numpy as np, torch
from torch.nn.attention.flex_attention import flex_attention
from kernels import attend
from pack import main as pack
from rows import corpus, document_mask

# of float32
MOST = 1e-5


def check_mask(n, num_documents, seed):
    """Results for documents that begin anywhere."""
    torch.manual_seed(seed)
    first = torch.zeros(n, dtype=torch.int32)
    for at in sorted(np.random.default_rng(seed).integers(1, n, num_documents).tolist()):
        first[at:] = at
    q, k, v = (torch.randn(1, n, heads, 64) for heads in (4, 2, 2))
    mask = document_mask(first, lambda b, h, i, j: (j <= i) & (first[i] <= j))
    # compiled it skips blocks, as there; as it stands it would compute them all
    got = torch.compile(flex_attention, dynamic=False)(*(x.transpose(1, 2) for x in (q, k, v)), block_mask=mask, enable_gqa=True).transpose(1, 2)
    worst = (got - attend(q, k, v, first[None])).abs().max().item()
    assert worst < MOST, f"{num_documents} documents: {worst}"
    return worst


def check_pack():
    """Files of two projects in three parts."""
    docs = [{"p": f"p{i // 20}", "path": f"src/{i}.ts", "lang": "ts" if i % 2 else "py", "t": f"line {i} é\n" * (i % 7 + 1)} for i in range(40)]
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/corpus.jsonl", "w") as f:
            f.writelines(json.dumps(d) + "\n" for d in docs)
        os.mkdir(folder + "/parts")
        pack(folder + "/corpus.jsonl", folder + "/parts", 3)
        assert len(os.listdir(folder + "/parts")) == 3
        found = corpus(folder + "/parts", 2)
    assert sorted((d["path"], d["t"]) for v in found.values() for d in v) == sorted((d["path"], d["t"]) for d in docs)


if __name__ == "__main__":
    with torch.no_grad():
        worst = max(check_mask(1024, n, n) for n in (0, 1, 5, 20, 300))
    check_pack()
    print("rows agree; the mask's largest difference is", worst)
