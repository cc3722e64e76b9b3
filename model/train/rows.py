"""Rows of one length in which sequences of all lengths lie one behind the other, so that an accelerator's kernels are compiled once.

Usage: rows.py CORPUS_PARTS TOKENIZER_JSON OUT_DIR PROCESSES
Mixes as mix.py does, without an end, in so many processes; OUT_DIR/rows_NNNNNN.npz: x, y (uint16), w (uint8, quarters), first (int32: where a position's document begins in its row), each [ROWS, LENGTH].
"""
import json, multiprocessing, os, random, sys, time
import numpy as np

LENGTH, ROWS = 65_536, 8
# Sequence lengths and how often each is made.
LENGTHS = {1024: 6, 2048: 2, 4096: 2}
# Files that wait to be read: enough for half a minute.
WAITING = 64


def corpus(folder, processes):
    """Files by language, of the parts that pack.py wrote."""
    from pack import decompress
    names = sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith((".ppmd", ".xz")))
    files = {}
    with multiprocessing.Pool(processes) as pool:
        for part in pool.imap_unordered(decompress, names):
            for line in part.decode().split("\n"):
                lang, path, text = json.loads(line)
                files.setdefault(lang, []).append({"lang": lang, "path": path, "t": text})
    # in an order that the parts' has no part in
    return {lang: sorted(files[lang], key=lambda d: (d["path"], d["t"])) for lang in sorted(files)}


def rows_of(ids, w):
    """The arrays of a file, of sequences [n, T + 1] that fill ROWS rows."""
    from stream import document_starts
    T = ids.shape[1] - 1
    first = document_starts(ids[:, :-1]) + (np.arange(len(ids), dtype=np.int32) % (LENGTH // T) * T)[:, None]
    return {"x": ids[:, :-1].reshape(ROWS, LENGTH), "y": ids[:, 1:].reshape(ROWS, LENGTH), "w": w[:, 1:].reshape(ROWS, LENGTH), "first": first.reshape(ROWS, LENGTH)}


def work(number, step, files, names, tokf, out):
    """Files number, number + step, ..."""
    from tokenizers import Tokenizer
    from layouts import Encoder
    from mix import make_shard
    enc = Encoder(Tokenizer.from_file(tokf), max(LENGTHS))
    while True:
        while len([f for f in os.listdir(out) if f.endswith(".npz")]) > WAITING:
            time.sleep(0.5)
        T = random.Random(number).choices(list(LENGTHS), list(LENGTHS.values()))[0]
        ids, w, _ = make_shard(files, names, enc, T, ROWS * LENGTH, 1_000_000 + number)
        name = f"{out}/rows_{number:06}.npz"
        with open(name + ".part", "wb") as f:
            np.savez(f, **rows_of(ids, w))
        os.replace(name + ".part", name)
        number += step


def main(parts, tokf, out, processes):
    os.environ["RAYON_NUM_THREADS"], os.environ["TOKENIZERS_PARALLELISM"] = "1", "false"
    from mix import names_in
    began = time.monotonic()
    files = corpus(parts, processes)
    names = names_in(files, 1)
    print(f"corpus read in {time.monotonic() - began:.1f} s", {k: len(v) for k, v in files.items()}, flush=True)
    fork = multiprocessing.get_context("fork")
    all_ = [fork.Process(target=work, args=(n, processes, files, names, tokf, out)) for n in range(processes)]
    for p in all_:
        p.start()
    for p in all_:
        p.join()


def document_mask(first, nearest):
    """Flex attention's mask of blocks for one row [LENGTH]: each position sees its document up to itself.

    `first` never falls, so the blocks that a block of queries sees are a range: wholly from the one behind the last row's first key, in part before, and itself.
    """
    import torch
    from torch.nn.attention.flex_attention import BlockMask
    B = 128
    n = len(first) // B
    i = torch.arange(n, device=first.device, dtype=torch.int32)
    low, high = first[::B] // B, torch.minimum((first[B - 1::B] + B - 1) // B, i)
    k = i[None]
    partial = torch.where(k < (high - low)[:, None], low[:, None] + k, i[:, None]).clamp(max=n - 1).to(torch.int32)
    whole = (high[:, None] + k).clamp(max=n - 1).to(torch.int32)
    as4 = lambda x: x[None, None].contiguous()
    return BlockMask.from_kv_blocks(as4((high - low + 1).to(torch.int32)), as4(partial), as4((i - high).to(torch.int32)), as4(whole), BLOCK_SIZE=B, mask_mod=nearest)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
