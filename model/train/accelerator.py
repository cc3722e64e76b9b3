"""Train from scratch on one accelerator (CUDA) in so many seconds: Muon for matrices, Adam for the rest, bfloat16 autocast; rates go by the clock.

Usage: accelerator.py CORPUS_PARTS TOKENIZER_JSON OUT_DIR SECONDS
Other processes mix rows meanwhile (rows.py), each token sequence anew. OUT_DIR/log.jsonl has a line every 100 steps, OUT_DIR/weights.NN are parts of a torch file with {"model": bfloat16, "cfg"}, written every two minutes and at the end.
"""
import glob, io, json, os, queue, subprocess, sys, tempfile, threading, time
import numpy as np, torch
from model import Model
from rows import LENGTH, ROWS, document_mask

CFG = dict(hidden=512, layers=8, heads=8, kv_heads=2, head_dim=64, ffn=1408, vocab=6144, theta=100000.0, context=4096)
MATRICES, REST = 0.02, 3e-3
WEIGHT_DECAY = 0.05
# Parts of the time: the rates rise, stay, and fall to zero.
WARMUP, FALL = 0.015, 0.6
SAVE_SECONDS, PART_BYTES = 120, 15_000_000


class Rows:
    """Endless rows of what is mixed, each file as long as it is new; where the accelerator is faster, older ones again."""

    def __init__(self, folder):
        self.folder, self.old, self.again = folder, [], 0
        self.queue = queue.Queue(32)
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
        return [t.cuda(non_blocking=True) for t in self.queue.get(timeout=60)]


class Optimiser:
    """Muon for the matrices, stacked by shape, and Adam for the embedding and the norms; `step(k)` at k times the peak rates."""

    def __init__(self, model):
        named = list(model.named_parameters())
        self.shapes = {}
        for n, p in named:
            if p.dim() == 2 and "embed" not in n:
                self.shapes.setdefault(tuple(p.shape), []).append(p)
        self.rest = [p for n, p in named if p.dim() < 2 or "embed" in n]
        self.momenta = {s: [torch.zeros_like(p) for p in ps] for s, ps in self.shapes.items()}
        self.adam = torch.optim.Adam(self.rest, lr=REST, betas=(0.9, 0.95), eps=1e-10, fused=True)
        from optim import newton_schulz
        self.orthogonal = torch.compile(newton_schulz, dynamic=False)
        self.mu = 0.95

    @torch.no_grad()
    def step(self, k):
        torch.nn.utils.clip_grad_norm_(self.rest, 1.0)
        for s, ps in self.shapes.items():
            gs, ms = [p.grad for p in ps], self.momenta[s]
            torch._foreach_lerp_(ms, gs, 1 - self.mu)
            u = torch.stack(torch._foreach_lerp(gs, ms, self.mu))
            wide = s[0] <= s[1]
            u = self.orthogonal(u if wide else u.mT)
            torch._foreach_mul_(ps, 1 - MATRICES * k * WEIGHT_DECAY)
            torch._foreach_add_(ps, list((u if wide else u.mT).unbind(0)), alpha=-MATRICES * k * max(1, s[0] / s[1]) ** 0.5)
        for g in self.adam.param_groups:
            g["lr"] = REST * k
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        for ps in self.shapes.values():
            for p in ps:
                p.grad = None


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
    folder = tempfile.mkdtemp(dir="/dev/shm")
    here = os.path.dirname(os.path.abspath(__file__))
    mixers = subprocess.Popen([sys.executable, here + "/rows.py", parts, tokf, folder, str(max(1, (os.cpu_count() or 4) - 3))])
    log = open(out + "/log.jsonl", "a")

    def tell(**what):
        print(json.dumps(what), file=log, flush=True)
        print(what, flush=True)

    model = Model(CFG).cuda()
    for b in model.layers:
        b.compile(dynamic=False)
    loss_of = torch.compile(loss, dynamic=False)
    optimiser, rows = Optimiser(model), Rows(folder)
    kept = torch.zeros(LENGTH, dtype=torch.int32, device="cuda")
    nearest = lambda b, h, q, k: (k <= q) & (kept[q] <= k)

    def train_step(k):
        x, y, w, first = rows.next()
        kept.copy_(first)
        with torch.autocast("cuda", torch.bfloat16):
            h = model(x[None], first=first[None], seen=document_mask(first, nearest))
            l = loss_of(h[0], model.embed.weight, y, w)
        l.backward()
        optimiser.step(k)
        return l.detach()

    try:
        # the first step compiles; what follows is timed
        first_loss = train_step(0.02)
        tell(parameters=sum(p.numel() for p in model.parameters()), first_loss=first_loss.item(), device=torch.cuda.get_device_name(), seconds=round(time.monotonic() - began, 1))
        start, step, losses, last, saved = time.monotonic(), 0, [], (time.monotonic(), 0), time.monotonic()
        length = began + seconds - start
        while (now := time.monotonic()) < began + seconds:
            optimiser.mu = 0.85 + 0.1 * min(1, step / 300)
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
    finally:
        subprocess.run(["pkill", "-P", str(mixers.pid)])
        mixers.kill()


def loss(h, embed, targets, weights):
    """Mean cross entropy, weighted; h [n, hidden], embed [V, hidden]."""
    logits = torch.nn.functional.linear(h, embed.to(h.dtype)).float()
    return (torch.nn.functional.cross_entropy(logits, targets, reduction="none") * weights).sum() / weights.sum()


if __name__ == "__main__":
    main(*sys.argv[1:4], float(sys.argv[4]))
