"""The corpus in a form that travels: parts of equal size, compressed to an eighth.

Usage: pack.py CORPUS_JSONL OUT_DIR PARTS
Writes OUT_DIR/part_NN.ppmd: the length in 8 bytes, then lines of JSON, [language, path, text] of a file each; files of a project stay together. A few texts come out of that compressor (pyppmd 1.3) broken: such parts become .xz.
"""
import json, lzma, multiprocessing, os, sys

# Of the model of contexts: what comes before in the part is found again from 16 characters on.
ORDER, MEMORY = 16, 1000 << 20


def compress(name, lines):
    """Writes a part; gives its size."""
    import pyppmd
    encoder = pyppmd.Ppmd7Encoder(ORDER, MEMORY)
    packed, suffix = len(lines).to_bytes(8, "little") + encoder.encode(lines) + encoder.flush(), ".ppmd"
    try:
        right = pyppmd.Ppmd7Decoder(ORDER, MEMORY).decode(packed[8:], len(lines)) == lines
    except ValueError:
        right = False
    if not right:
        packed, suffix = lzma.compress(lines, preset=9 | lzma.PRESET_EXTREME), ".xz"
    with open(name + suffix, "wb") as f:
        f.write(packed)
    return len(packed)


def decompress(name):
    """Lines of a part."""
    with open(name, "rb") as f:
        if name.endswith(".xz"):
            return lzma.decompress(f.read())
        import pyppmd
        size = int.from_bytes(f.read(8), "little")
        return pyppmd.Ppmd7Decoder(ORDER, MEMORY).decode(f.read(), size)


def main(src, out, parts):
    with open(src) as f:
        docs = [d for d in map(json.loads, f) if "<|" not in d["t"]]
    lines = [json.dumps([d["lang"], d["path"], d["t"]], ensure_ascii=False, separators=(",", ":")).encode() for d in docs]
    total, cut, seen = sum(map(len, lines)), [0], 0
    for i, l in enumerate(lines):
        seen += len(l)
        if seen >= total * len(cut) / parts:
            cut.append(i + 1)
    with multiprocessing.Pool() as pool:
        sizes = pool.starmap(compress, [(f"{out}/part_{n:02}", b"\n".join(lines[a:b])) for n, (a, b) in enumerate(zip(cut, cut[1:]))])
    print(f"{total} bytes in {len(sizes)} parts of {sum(sizes)}")


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    main(*sys.argv[1:3], int(sys.argv[3]))
