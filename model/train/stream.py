"""Training sequences in an order that depends on how many were taken alone, so that a run goes on exactly where it stopped."""
import os, re
import numpy as np, torch
from controls import EOT


def document_starts(ids):
    """Where the document begins that each position is in, int32 as ids: behind the last end of one. Parts of plain files have no end, and count to what follows."""
    behind = np.where(ids[:, :-1] == EOT, np.arange(1, ids.shape[1]), 0)
    return np.maximum.accumulate(np.pad(behind, ((0, 0), (1, 0))), 1).astype(np.int32)


class Stream:
    """Endless micro-batches of sequences of one length: shard after shard, each in an order of its own, then all again in another.

    `state` (shard number, pass, sequences taken) is all that is to be kept. Shards may be added while training goes on.
    """

    def __init__(self, folder, T, B, state=(0, 0, 0)):
        self.folder, self.T, self.B = folder, T, B
        self.state = tuple(state)
        self._load()

    def _shards(self):
        return sorted(int(m.group(1)) for f in os.listdir(self.folder) if (m := re.fullmatch(rf"seq_{self.T}_(\d+)\.npz", f)))

    def _load(self):
        shard, epoch, _ = self.state
        with np.load(f"{self.folder}/seq_{self.T}_{shard:03}.npz") as z:
            self.ids, self.w = z["ids"], z["w"]
        self.order = np.random.default_rng([self.T, shard, epoch]).permutation(len(self.ids))

    def next(self):
        """(inputs, targets, loss weights, document starts), each [B, T]."""
        shard, epoch, i = self.state
        if i + self.B > len(self.order):
            left = [s for s in self._shards() if s > shard]
            self.state = (left[0], epoch, 0) if left else (self._shards()[0], epoch + 1, 0)
            self._load()
            return self.next()
        k = np.sort(self.order[i:i + self.B])
        self.state = (shard, epoch, i + self.B)
        x = torch.from_numpy(self.ids[k].astype(np.int64))
        return x[:, :-1].contiguous(), x[:, 1:].contiguous(), torch.from_numpy(self.w[k][:, 1:].astype(np.float32) / 4), torch.from_numpy(document_starts(self.ids[k][:, :-1]))
