"""The examples whose gradients GPU tests hold: what each keeps and adds, told once more, for what fp32 and the rounding of
weights may leave of a row (test_backward.py, test_training.py).
"""

import dataclasses
from typing import Callable

import torch


HALF_ULP = 2.0**-8  # of bf16; num/dtype.h
NOISE = 2.0**-20  # of do . v in fp32: operator/families/attention_bwd/truth.cpp


@dataclasses.dataclass
class Example:
    keep: Callable  # (i, j, M, N, others): which scores count
    score: Callable = lambda s, i, j, others: s  # of the scaled product
    others: Callable = lambda B, M, N: {}  # arguments beside q, k and v, by name
    square: bool = False  # as many queries as keys
    columns: int = 128
    learned: dict = dataclasses.field(default_factory=dict)  # name: what a score (of a sink: the sink) changes by with it


def _documents(B, M, N):
    return {"document": torch.sort(torch.randint(0, 4, (B, N), device="cuda"), -1).values}


def _slopes(h):
    return torch.exp2(-0.5 * (h + 1))


def _of_heads(x):
    return x.double()[:, None, None]


def _kerple(i, j, r1, r2):
    return -r1 * torch.log1p(r2 * (i - j).clamp(min=0))


def _slope(name, i, j, others):
    """What _kerple changes by with others[name], of heads by queries by keys."""
    values = {n: _of_heads(t).expand(-1, i.shape[0], j.shape[0]).requires_grad_() for n, t in others.items()}
    return torch.autograd.grad(_kerple(i, j, **values).sum(), values[name])[0][None]


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
    "alibi": Example(_causal, lambda s, i, j, others: s + _of_heads(others["slopes"]) * (j - i),
                     lambda B, M, N: {"slopes": torch.rand(32, device="cuda") / 8},
                     learned={"slopes": lambda i, j, others: (j - i)[None, None].double()}),
    "kerple": Example(_causal, lambda s, i, j, others: s + _kerple(i, j, **{n: _of_heads(t) for n, t in others.items()}),
                      lambda B, M, N: {name: torch.rand(16, device="cuda") + 0.1 for name in ("r1", "r2")},
                      learned={name: lambda i, j, others, name=name: _slope(name, i, j, others) for name in ("r1", "r2")}),
    "fox_decay": Example(_causal, lambda s, i, j, others: s - others["decay"].double()[:, :, None] +
                         others["decay"].double()[..., None], lambda B, M, N: {
                             "decay": torch.nn.functional.logsigmoid(torch.randn(B, 16, N, device="cuda") + 4).cumsum(-1)},
                         square=True, learned={"decay": lambda i, j, others: -torch.ones_like(i + j)[None, None].double()}),
    "softcap": Example(_causal, lambda s, i, j, others: 50.0 * torch.tanh(s / 50.0)),
    "documents": Example(lambda i, j, M, N, others: (j <= i) & (
        others["document"][:, None, :, None] == others["document"][:, None, None, :]), others=_documents, square=True),
    "relative_bias": Example(_all, lambda s, i, j, others: s + others["table"].double()[:, (j - i).clamp(-128, 128) + 128],
                             lambda B, M, N: {"table": torch.randn(32, 257, device="cuda")}),
    "sink": Example(_causal, others=lambda B, M, N: {"sinks": torch.randn(64, device="cuda")}, columns=64,
                    learned={"sinks": None}),
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


def may_be_off(example, name, q, k, v, d_o, others, p, lse):
    """What a gradient of what is learned may be off by, element by element, as operator/families/attention_bwd/truth.cpp has
    it: each score's by half an ulp, the output's product with d_o by that of its weights, seven deviations of both, and fp32."""
    group = q.shape[1] // k.shape[1]
    dp = d_o.double() @ v.double().repeat_interleave(group, 1).mT
    off = HALF_ULP * (p * dp).square().sum(-1).sqrt()
    floats = NOISE * p * d_o.double().norm(dim=-1)[..., None] * v.double().norm(dim=-1).repeat_interleave(group, 1)[..., None, :]
    delta = (p * dp).sum(-1)
    if name == "sinks":
        weight = (others["sinks"].double()[:, None] - lse).exp()
        return 7 * (weight * off).square().sum((0, 2)).sqrt() + NOISE * (weight * delta).abs().sum((0, 2))
    i, j = torch.arange(q.shape[2], device="cuda")[:, None], torch.arange(k.shape[2], device="cuda")
    slope = example.learned[name](i, j, others)
    each = (HALF_ULP * p * (dp - delta[..., None]) * slope).square()
    if others[name].dim() > 1:  # of each key
        return 7 * (each + (p * slope * off[..., None]).square()).sum(2).sqrt() + (floats * slope.abs()).sum(2)
    rows = (p * slope).sum(-1) * off
    return 7 * (each.sum((0, 2, 3)) + rows.square().sum((0, 2))).sqrt() + (floats * slope.abs()).sum((0, 2, 3))
