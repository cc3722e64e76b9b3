"""Checkpoint files, kept small without losing a bit: of each value the bytes lie apart, and those with the exponents, which hardly differ, compress by half."""
import os, zlib
import torch


def pack(x):
    """`x`, in whose dicts and lists each tensor is replaced: by its type, its shape and, for each byte of a value, that byte of all values, compressed."""
    if isinstance(x, dict):
        return {k: pack(v) for k, v in x.items()}
    if isinstance(x, list):
        return [pack(v) for v in x]
    if not isinstance(x, torch.Tensor):
        return x
    planes = x.contiguous().reshape(-1, 1).view(torch.uint8).numpy().T
    return {"dtype": x.dtype, "shape": tuple(x.shape), "planes": [torch.frombuffer(bytearray(zlib.compress(p.tobytes(), 1)), dtype=torch.uint8) for p in planes]}


def unpack(x):
    """Inverse to `pack`."""
    if isinstance(x, dict) and "planes" in x:
        planes = [torch.frombuffer(bytearray(zlib.decompress(p.numpy().tobytes())), dtype=torch.uint8) for p in x["planes"]]
        return torch.stack(planes, 1).view(x["dtype"]).reshape(x["shape"])
    if isinstance(x, dict):
        return {k: unpack(v) for k, v in x.items()}
    return [unpack(v) for v in x] if isinstance(x, list) else x


def write(path, state):
    """Written beside its place and moved there whole."""
    torch.save(pack(state), path + ".part")
    os.replace(path + ".part", path)


def read(path):
    """What `write` was given; of a file with plain tensors, those."""
    return unpack(torch.load(path, map_location="cpu"))
