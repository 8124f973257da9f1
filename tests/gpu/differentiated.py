"""The examples whose gradients GPU tests hold: what each keeps and adds, told once more, for what fp32 and the rounding of
weights may leave of a row (test_backward.py, test_training.py).
"""

import dataclasses
from typing import Callable

import torch


@dataclasses.dataclass
class Example:
    keep: Callable  # (i, j, M, N, others): which scores count
    score: Callable = lambda s, i, j, others: s  # of the scaled product
    others: Callable = lambda B, M, N: {}  # arguments beside q, k and v, by name
    square: bool = False  # as many queries as keys
    columns: int = 128


def _documents(B, M, N):
    return {"document": torch.sort(torch.randint(0, 4, (B, N), device="cuda"), -1).values}


def _slopes(h):
    return torch.exp2(-0.5 * (h + 1))


def _causal(i, j, M, N, others):
    return j <= i


def _all(i, j, M, N, others):
    return i + j >= 0


EXAMPLES = {
    "full": Example(_all),
    "causal": Example(_causal),
    "sliding_window": Example(lambda i, j, M, N, others: (j <= i) & (i - j < 1024)),
    "bottom_right": Example(lambda i, j, M, N, others: j <= i + N - M),
    "alibi_heads": Example(_causal, lambda s, i, j, others: s + _slopes(
        torch.arange(s.shape[1], device="cuda")[:, None, None].double()) * (j - i)),
    "softcap": Example(_causal, lambda s, i, j, others: 50.0 * torch.tanh(s / 50.0)),
    "documents": Example(lambda i, j, M, N, others: (j <= i) & (
        others["document"][:, None, :, None] == others["document"][:, None, None, :]), others=_documents, square=True),
    "relative_bias": Example(_all, lambda s, i, j, others: s + others["table"].double()[:, (j - i).clamp(-128, 128) + 128],
                             lambda B, M, N: {"table": torch.randn(32, 257, device="cuda")}),
    "sink": Example(_causal, others=lambda B, M, N: {"sinks": torch.randn(64, device="cuda")}, columns=64),
}


def weights_of(example, q, k, others):
    """(p, the derivative of a score by its product q . k, the log-sums), in fp64, of [B, heads, rows, D]."""
    i, j = torch.arange(q.shape[2], device="cuda")[:, None], torch.arange(k.shape[2], device="cuda")
    product = (q.double() @ k.double().repeat_interleave(q.shape[1] // k.shape[1], 1).mT).requires_grad_()
    score = example.score(product * q.shape[-1]**-0.5, i, j, others)
    slope, = torch.autograd.grad(score.sum(), product)
    kept = example.keep(i, j, q.shape[2], k.shape[2], others)
    score = score.detach().masked_fill(~kept, -torch.inf)
    lse = score.logsumexp(-1)
    if "sinks" in others:
        lse = torch.logaddexp(lse, others["sinks"].double()[:, None])
    return (score - lse[..., None]).exp().nan_to_num(0), slope, lse
