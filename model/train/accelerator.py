"""Train from scratch on one accelerator (CUDA) in so many seconds: Muon for matrices, Adam for the rest, bfloat16 autocast; rates go by the clock.

Usage: accelerator.py CORPUS_PARTS TOKENIZER_JSON OUT_DIR SECONDS
Other processes mix rows meanwhile (rows.py), each token sequence anew. OUT_DIR/log.jsonl has a line every 100 steps, OUT_DIR/weights.NN are parts of a torch file with {"model": bfloat16, "cfg"}, written every two minutes and at the end.
"""
import glob, io, json, os, queue, shutil, signal, subprocess, sys, tempfile, threading, time
import numpy as np, torch
from model import Model
from optim import Muon, newton_schulz
from rows import LENGTH, ROWS, document_mask

CFG = dict(hidden=512, layers=8, heads=8, kv_heads=2, head_dim=64, ffn=1408, vocab=6144, theta=100000.0, context=4096)
MATRICES, REST = 0.02, 3e-3
WEIGHT_DECAY = 0.05
# Parts of the time: the rates rise, stay, and fall to zero.
WARMUP, FALL = 0.015, 0.6
SAVE_SECONDS, PART_BYTES = 120, 15_000_000


class Rows:
    """Endless rows of what other processes mix; where the accelerator is faster, older ones again. `again` counts files, of ROWS rows each."""

    def __init__(self, parts, tokf):
        self.folder, self.old, self.again = tempfile.mkdtemp(dir="/dev/shm"), [], 0
        self.queue = queue.Queue(32)
        here = os.path.dirname(os.path.abspath(__file__))
        command = [sys.executable, here + "/rows.py", parts, tokf, self.folder, str(max(1, (os.cpu_count() or 4) - 3))]
        # a session of its own, which ends as a whole
        self.mixers = subprocess.Popen(command, start_new_session=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _files(self):
        r = np.random.default_rng(0)
        while True:
            new = sorted(glob.glob(self.folder + "/*.npz"))
            for name in new:
                with np.load(name) as z:
                    arrays = {k: z[k] for k in ("x", "y", "w", "first")}
                os.remove(name)
                self.old = [*self.old[-200:], arrays]
                yield arrays
            if not new and self.old and self.queue.qsize() < 4:
                self.again += 1
                yield self.old[r.integers(len(self.old))]
            elif not new:
                time.sleep(0.02)

    def _read(self):
        for a in self._files():
            for i in range(ROWS):
                row = torch.from_numpy(a["x"][i].astype(np.int32)), torch.from_numpy(a["y"][i].astype(np.int64)), torch.from_numpy(a["w"][i].astype(np.float32) / 4), torch.from_numpy(a["first"][i])
                self.queue.put([t.pin_memory() for t in row])

    def next(self):
        """x, y, weights and document starts of a row, [LENGTH] each, on the accelerator."""
        while True:
            try:
                return [t.cuda(non_blocking=True) for t in self.queue.get(timeout=1)]
            except queue.Empty:
                if self.mixers.poll() is not None:
                    sys.exit("the processes that mix have ended")

    def close(self):
        try:
            os.killpg(self.mixers.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        shutil.rmtree(self.folder, ignore_errors=True)


def optimisers(model):
    """Muon for the matrices, Adam for the embedding and the norms; the latter. Moments in float32: there is room."""
    named = list(model.named_parameters())
    rest = [p for n, p in named if p.dim() < 2 or "embed" in n]
    muon = Muon([p for n, p in named if p.dim() == 2 and "embed" not in n], MATRICES, wd=WEIGHT_DECAY, dtype=torch.float32, orthogonal=torch.compile(newton_schulz, dynamic=False))
    return muon, torch.optim.Adam(rest, lr=REST, betas=(0.9, 0.95), eps=1e-10, fused=True), rest


def save(model, out):
    """The weights in parts."""
    b = io.BytesIO()
    torch.save({"model": {k: v.detach().to(torch.bfloat16).cpu() for k, v in model.state_dict().items()}, "cfg": CFG}, b)
    b = b.getvalue()
    for n, i in enumerate(range(0, len(b), PART_BYTES)):
        with open(f"{out}/weights.{n:02}", "wb") as f:
            f.write(b[i:i + PART_BYTES])


def rate(f):
    """Part of the peak rates at the part f of the time."""
    return min(1.0, f / WARMUP + 0.02) * min(1.0, max(0.0, (1 - f) / FALL))


def main(parts, tokf, out, seconds):
    began = time.monotonic()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    # the layers share one compiled form; should they not, slow is better than the unfused attention, for which there is no room
    torch._dynamo.config.recompile_limit = 32
    rows = Rows(parts, tokf)
    try:
        with open(out + "/log.jsonl", "a") as log:
            run(rows, began, seconds, out, log)
    finally:
        rows.close()


def run(rows, began, seconds, out, log):
    """Steps until so many seconds after `began`."""
    def tell(**what):
        print(json.dumps(what), file=log, flush=True)
        print(what, flush=True)

    model = Model(CFG).cuda()
    for b in model.layers:
        b.compile(dynamic=False)
    loss_of = torch.compile(loss, dynamic=False)
    muon, adam, rest = optimisers(model)
    kept = torch.zeros(LENGTH, dtype=torch.int32, device="cuda")
    nearest = lambda b, h, q, k: (k <= q) & (kept[q] <= k)

    def train_step(k):
        x, y, w, first = rows.next()
        kept.copy_(first)
        with torch.autocast("cuda", torch.bfloat16):
            h = model(x[None], first=first[None], seen=document_mask(first, nearest))
            l = loss_of(h[0], model.embed.weight, y, w)
        l.backward()
        torch.nn.utils.clip_grad_norm_(rest, 1.0)
        muon.step(k)
        adam.param_groups[0]["lr"] = REST * k
        adam.step()
        model.zero_grad(set_to_none=True)
        return l.detach()

    # the first step compiles; what follows is timed
    first_loss = train_step(0.02)
    tell(parameters=sum(p.numel() for p in model.parameters()), first_loss=first_loss.item(), device=torch.cuda.get_device_name(), seconds=round(time.monotonic() - began, 1))
    start, step, losses, last, saved = time.monotonic(), 0, [], (time.monotonic(), 0), time.monotonic()
    length = began + seconds - start
    while (now := time.monotonic()) < began + seconds:
        muon.mu = 0.85 + 0.1 * min(1, step / 300)
        losses.append(train_step(rate((now - start) / length)))
        step += 1
        if step % 100 == 0:
            mean = torch.stack(losses).mean().item()
            now = time.monotonic()
            tell(step=step, tokens=step * LENGTH, loss=round(mean, 4), rate=round(rate((now - start) / length), 4), tok_s=round((step - last[1]) * LENGTH / (now - last[0])), waiting=rows.queue.qsize(), again=rows.again,
                 seconds=round(now - began, 1))
            if not np.isfinite(mean):
                sys.exit("the loss is not finite")
            losses, last = [], (now, step)
        if time.monotonic() - saved > SAVE_SECONDS:
            save(model, out)
            saved = time.monotonic()
    torch.cuda.synchronize()
    save(model, out)
    tell(step=step, tokens=step * LENGTH, memory=torch.cuda.max_memory_allocated(), seconds=round(time.monotonic() - began, 1))


def loss(h, embed, targets, weights):
    """Mean cross entropy, weighted; h [n, hidden], embed [V, hidden]."""
    logits = torch.nn.functional.linear(h, embed.to(h.dtype)).float()
    return (torch.nn.functional.cross_entropy(logits, targets, reduction="none") * weights).sum() / weights.sum()


if __name__ == "__main__":
    main(*sys.argv[1:4], float(sys.argv[4]))
