"""Checks that a run that was stopped goes on with the same losses as one that was not. Usage: check_resume.py

Made-up sequences in a temporary folder, real model and optimisers, a warm-up and a decay; takes seconds. Ends with an error where they part.
"""
import os, tempfile
import numpy as np, torch
from stream import Stream
from train import Trainer

CYCLE, MICRO, PEAK, WARMUP = [(64, 2), (64, 2), (128, 1)], 2, 0.6, 512


def shards(folder):
    """Two small shards of each length, so that the second one and the second pass begin within the check."""
    r = np.random.default_rng(0)
    for T in (64, 128):
        for n in range(2):
            np.savez(f"{folder}/seq_{T}_{n:03}.npz", ids=r.integers(9, 6144, (10, T + 1), dtype=np.uint16), w=r.integers(0, 9, (10, T + 1), dtype=np.uint8))


def trainer(folder):
    torch.manual_seed(0)
    return Trainer(folder, CYCLE, MICRO, compiled=False)


def steps(t, n):
    return [t.train_step(PEAK, WARMUP)[0] for _ in range(n)]


def main():
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        shards(folder)
        whole = trainer(folder)
        expected = steps(whole, 9)
        whole.decay = (whole.seen, 2000)
        expected += steps(whole, 6)
        t, got = trainer(folder), []
        for n in (4, 5, 2, 4):
            got += steps(t, n)
            if len(got) == 9:
                t.decay = (t.seen, 2000)
            t.save(folder + "/ck.pt")
            assert not os.path.exists(folder + "/ck.pt.part")
            t = trainer(folder)
            t.load(folder + "/ck.pt")
        assert got == expected, f"parted: {[(i, a, b) for i, (a, b) in enumerate(zip(got, expected)) if a != b]}"
        s = Stream(folder, 64, 2)
        rows = [tuple(s.next()[0].flatten().tolist()) for _ in range(20)]
        assert rows[:10] != rows[10:] and sorted(sum(rows[:10], ())) == sorted(sum(rows[10:], ())), "a pass takes each sequence once, the next in another order"
    print(f"{len(got)} steps in 4 parts: the same losses, {got[0]:.4f} to {got[-1]:.4f}")


if __name__ == "__main__":
    main()
