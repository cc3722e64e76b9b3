"""Attention and the loss of the head: kernels of our own where the processor multiplies bfloat16 tiles (AMX), the framework's elsewhere.

kernels.cpp is compiled when it is first used, with g++, and kept in the user's own folder for caches: nobody else can put another one there.
"""
import ctypes, hashlib, os, subprocess
import torch
import torch.nn.functional as F

FLAGS = ["-O3", "-march=sapphirerapids", "-fopenmp", "-shared", "-fPIC", "-Wno-ignored-attributes"]
# Rows whose logits are computed together: few enough to stay in the caches between the products.
ROWS = 512


def load():
    """The compiled kernels, or None where the processor or the compiler is not there."""
    src = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.cpp")
    folder = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kvasir-train")
    with open(src, "rb") as f:
        name = os.path.join(folder, f"kernels-{hashlib.sha256(f.read()).hexdigest()[:16]}.so")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not os.path.exists(name):
            subprocess.run(["g++", *FLAGS, src, "-o", f"{name}.{os.getpid()}"], check=True)
            os.replace(f"{name}.{os.getpid()}", name)
        lib = ctypes.CDLL(name)
    except (OSError, subprocess.CalledProcessError):
        return None
    return lib if lib.available() else None


LIBRARY = load()
AVAILABLE = LIBRARY is not None
# The logits of one call are the largest tensor by far: the same memory serves all calls, since fresh pages take longer than the product that fills them.
SCRATCH = {}


def scratch(rows, columns):
    """Memory for bfloat16 [rows, columns] that holds until the next call."""
    if (rows, columns) not in SCRATCH:
        SCRATCH[rows, columns] = torch.empty(rows, columns, dtype=torch.bfloat16)
    return SCRATCH[rows, columns]


def keep_memory():
    """What is freed stays with the process (glibc): large tensors otherwise come as fresh pages each time."""
    TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for option, value in ((MMAP_MAX, 0), (TRIM_THRESHOLD, 2**31 - 1), (TOP_PAD, 64 * 2**20)):
            libc.mallopt(option, value)


def call(f, tensors, *sizes):
    """`f` on the data of the tensors, which have no gaps."""
    f(*(ctypes.c_void_p(t.data_ptr()) for t in tensors), *sizes)


@torch.library.custom_op("kvasir::attention", mutates_args=())
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, first: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """q [B, T, heads, 64], k and v [B, T, kvHeads, 64], all bfloat16; first int32 [B, T]: the first position that each one sees, which never falls.

    Gives the result, as q, and the base-2 logarithms of the sums [B, heads, T].
    """
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    B, T, heads, _ = q.shape
    out, lse = torch.empty_like(q), q.new_empty(B, heads, T, dtype=torch.float32)
    call(LIBRARY.forward, (q, k, v, first, out, lse), B, T, heads, k.shape[2])
    return out, lse


@attention.register_fake
def _(q, k, v, first):
    B, T, heads, _ = q.shape
    return q.new_empty(q.shape), q.new_empty(B, heads, T, dtype=torch.float32)


@torch.library.custom_op("kvasir::attention_backward", mutates_args=())
def attention_backward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, first: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of q, k and v."""
    q, k, v, gradient = q.contiguous(), k.contiguous(), v.contiguous(), gradient.contiguous()
    B, T, heads, _ = q.shape
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    call(LIBRARY.backward, (q, k, v, first, out, lse, gradient, dq, dk, dv), B, T, heads, k.shape[2])
    return dq, dk, dv


@attention_backward.register_fake
def _(q, k, v, first, out, lse, gradient):
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


attention.register_autograd(lambda ctx, gradient, _: (*attention_backward(*ctx.saved_tensors, gradient), None),
                            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs, *output))


def attend(q, k, v, first):
    """Attention of each position to those up to it in its document; shapes as `attention` has them, of any length and type. On an accelerator `first` is the mask of blocks (rows.document_mask)."""
    if q.is_cuda:
        from torch.nn.attention.flex_attention import flex_attention
        return flex_attention(*(x.to(v.dtype).transpose(1, 2) for x in (q, k, v)), block_mask=first, enable_gqa=True).transpose(1, 2)
    T, g = q.shape[1], q.shape[2] // k.shape[2]
    if q.dtype == torch.bfloat16 and T % 64 == 0 and q.shape[3] == 64 and AVAILABLE:
        return attention(q, k, v, first)[0]
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    at = torch.arange(T)
    seen = (at[:, None] >= at) & (first[:, :, None] <= at)
    return F.scaled_dot_product_attention(q, k.repeat_interleave(g, 1), v.repeat_interleave(g, 1), seen[:, None]).transpose(1, 2)


@torch.library.custom_op("kvasir::head", mutates_args=())
def head(h: torch.Tensor, embed: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Weighted sum of the cross entropies of h [n, hidden] with the tied embedding [V, hidden], both bfloat16; its gradients for both."""
    h = h.contiguous()
    logits, dh = scratch(len(h), len(embed)), torch.empty_like(h)
    losses = h.new_empty(len(h), dtype=torch.float32)
    for i in range(0, len(h), ROWS):
        part = logits[i:i + ROWS]
        torch.mm(h[i:i + ROWS], embed.T, out=part)
        call(LIBRARY.crossEntropy, (part, targets[i:i + ROWS], weights[i:i + ROWS], losses[i:i + ROWS]), len(part), len(embed))
        torch.mm(part, embed, out=dh[i:i + ROWS])
    return losses.sum(), dh, logits.T @ h


@head.register_fake
def _(h, embed, targets, weights):
    return h.new_empty((), dtype=torch.float32), h.new_empty(h.shape), embed.new_empty(embed.shape)


def keep_gradients(ctx, inputs, output):
    ctx.save_for_backward(output[1], output[2])


def head_backward(ctx, gradient, *_):
    dh, embed = ctx.saved_tensors
    return gradient.to(dh.dtype) * dh, gradient.to(dh.dtype) * embed, None, None


head.register_autograd(head_backward, setup_context=keep_gradients)


def weighted_loss(h, embed, targets, weights):
    """Weighted sum of the cross entropies; h [n, hidden], embed [V, hidden]."""
    if h.dtype == torch.bfloat16 and len(embed) % 32 == 0 and AVAILABLE and not h.is_cuda:
        return head(h, embed.to(h.dtype), targets, weights)[0]
    logits = F.linear(h, embed.to(h.dtype)).float()
    return (F.cross_entropy(logits, targets, reduction="none") * weights).sum()
