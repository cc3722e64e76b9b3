"""Muon for the matrices, Adam for the rest, and the learning rate as a function of the tokens seen.

Moments are kept in bfloat16 between two steps, where nothing else is asked for, so that a checkpoint holds them exactly in half the room.
"""
import torch


def newton_schulz(g, steps=5):
    """Approximate orthogonalisation of a stack of matrices [n, r, c] with r <= c (Muon)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        m = x @ x.transpose(-1, -2)
        x = a * x + (b * m + c * m @ m) @ x
    return x.float()


class Muon:
    """Momentum + orthogonalised update for 2-D weights, grouped by shape. `orthogonal`: newton_schulz, or what it was compiled to."""

    def __init__(self, params, lr=0.02, momentum=0.95, wd=0.0, dtype=torch.bfloat16, orthogonal=newton_schulz):
        self.lr, self.mu, self.wd, self.orthogonal = lr, momentum, wd, orthogonal
        self.groups = {}
        for p in params:
            self.groups.setdefault((min(p.shape), max(p.shape)), []).append(p)
        self.buf = {p: torch.zeros_like(p, dtype=dtype) for p in params}

    @torch.no_grad()
    def step(self, k):
        """One update at `k` times the peak rate."""
        for ps in self.groups.values():
            gs, ms = [p.grad for p in ps], [self.buf[p].float() for p in ps]
            torch._foreach_lerp_(ms, gs, 1 - self.mu)
            torch._foreach_copy_([self.buf[p] for p in ps], ms)
            us = torch._foreach_lerp(gs, ms, self.mu)
            x = self.orthogonal(torch.stack([u if u.shape[0] <= u.shape[1] else u.T for u in us]))
            torch._foreach_mul_(ps, 1 - self.lr * k * self.wd)
            for p, u in zip(ps, x):
                u = u if p.shape[0] <= p.shape[1] else u.T
                p.add_(u, alpha=-self.lr * k * max(1, p.shape[0] / p.shape[1]) ** 0.5)


class Adam:
    """Adam without weight decay (betas 0.9 and 0.95), for the embedding and the norms."""

    def __init__(self, params, lr):
        self.lr, self.steps = lr, 0
        self.moments = {p: [torch.zeros_like(p, dtype=torch.bfloat16) for _ in range(2)] for p in params}

    @torch.no_grad()
    def step(self, k):
        """One update at `k` times the peak rate."""
        self.steps += 1
        for p, (first, second) in self.moments.items():
            m = first.float().lerp(p.grad, 0.1)
            v = second.float().lerp(p.grad.square(), 0.05)
            first.copy_(m)
            second.copy_(v)
            p.addcdiv_(m, v.div_(1 - 0.95 ** self.steps).sqrt_().add_(1e-10), value=-self.lr * k / (1 - 0.9 ** self.steps))


def lr_scale(seen, peak, warmup, decay=None):
    """Part of the rates at `seen` tokens: warm-up to `peak`, plateau without an end; `decay` = (first token, tokens) falls linearly to zero."""
    k = peak * min(1.0, seen / warmup + 0.02)
    return k if decay is None else k * max(0.0, 1 - (seen - decay[0]) / decay[1])
