"""Puts documents into sequences of one length, with little padding."""
import numpy as np
from controls import PAD

# Documents that wait for a place that fits.
POOL = 300


class Packer:
    """Collects documents; `ids` uint16 [n, T + 1] and `weights` uint8 (quarters) of the full sequences."""

    def __init__(self, T, r):
        self.T, self.r, self.pool, self.seqs, self.ws = T, r, [], [], []

    @property
    def num_tokens(self):
        return len(self.seqs) * self.T

    def add(self, ids, w):
        self.pool.append((ids, w))
        if len(self.pool) > POOL:
            self.r.shuffle(self.pool)
            while len(self.pool) > POOL // 2:
                self.fill()

    def fill(self):
        """One sequence: any document first, then the longest that fits, until hardly any room is left."""
        room, s, w = self.T + 1, [], []
        while True:
            fits = [k for k, p in enumerate(self.pool) if len(p[0]) <= room]
            if not fits or room < 24:
                break
            best = fits[0] if not s else max(fits, key=lambda k: len(self.pool[k][0]))
            i, ww = self.pool.pop(best)
            s += i
            w += ww
            room -= len(i)
        self.seqs.append(np.array(s + [PAD] * room, np.uint16))
        self.ws.append(np.array(w + [0] * room, np.uint8))

    def result(self, n):
        """The first n sequences in random order."""
        order = list(range(min(n, len(self.seqs))))
        self.r.shuffle(order)
        return np.stack([self.seqs[i] for i in order]), np.stack([self.ws[i] for i in order])
