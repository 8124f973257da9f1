"""Three attention functions that a decoder trains with, in plain PyTorch, and the same by FlexAttention.

What a function takes beside q, k and v is learned (a start for each layer), or the number of the section that a byte is of.
"""

import dataclasses
from typing import Callable

import torch
import torch.nn.functional as F

LENGTH, WINDOW = 1024, 256


def causal(q, k, v):
    """q [B, 4, M, 128], k and v [B, 2, N, 128]."""
    k, v = (x.repeat_interleave(2, dim=1) for x in (k, v))
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
    return (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~seen, -torch.inf).softmax(-1) @ v


def sections(q, k, v, slopes, section):
    """Causal within a section, less by the distance. q [B, 4, S, 128], k and v [B, 2, S, 128], slopes [4], section [B, S] (int32)."""
    k, v = (x.repeat_interleave(2, dim=1) for x in (k, v))
    i, j = torch.arange(q.shape[2], device=q.device)[:, None], torch.arange(k.shape[2], device=q.device)
    scores = q @ k.mT * q.shape[-1] ** -0.5 + slopes[:, None, None] * (j - i)
    seen = (j <= i) & (section[:, None, :, None] == section[:, None, None, :])
    return scores.masked_fill(~seen, -torch.inf).softmax(-1).to(v.dtype) @ v


def window(q, k, v, sinks):
    """The last 256 keys, and a logit of each head without a value. q [B, 8, M, 64], k and v [B, 2, N, 64], sinks [8]."""
    k, v = (x.repeat_interleave(4, dim=1) for x in (k, v))
    i, j = torch.arange(q.shape[2], device=q.device)[:, None], torch.arange(k.shape[2], device=q.device)
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill((j > i) | (i - j >= WINDOW), -torch.inf)
    sink = sinks[:, None, None].expand(q.shape[0], -1, q.shape[2], 1)
    return torch.cat([scores, sink], -1).softmax(-1)[..., :-1].to(v.dtype) @ v


def _flex(keep, score=None, by_batch=None):
    """Of q, k and v: the output and the log-sums."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    compiled = torch.compile(flex_attention, dynamic=False)
    mask = create_block_mask(keep, by_batch, None, LENGTH, LENGTH, device="cuda")
    return lambda q, k, v: compiled(q, k, v, score_mod=score, block_mask=mask, enable_gqa=True, return_lse=True)


def causal_by_flex():
    call = _flex(lambda b, h, i, j: j <= i)
    return lambda q, k, v: call(q, k, v)[0]


def sections_by_flex():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    compiled, masks = torch.compile(flex_attention, dynamic=False), {}
    blocks = torch.compile(create_block_mask)

    def call(q, k, v, slopes, section):
        if section.data_ptr() not in masks:  # one for all layers of a step
            masks.clear()
            masks[section.data_ptr()] = blocks(lambda b, h, i, j: (j <= i) & (section[b, i] == section[b, j]), q.shape[0], None,
                                               LENGTH, LENGTH, device="cuda")
        return compiled(q, k, v, score_mod=lambda s, b, h, i, j: s + slopes[h] * (j - i), block_mask=masks[section.data_ptr()],
                        enable_gqa=True)
    return call


def window_by_flex():
    call = _flex(lambda b, h, i, j: (j <= i) & (i - j < WINDOW))

    def with_sinks(q, k, v, sinks):
        output, lse = call(q, k, v)
        return output * torch.sigmoid(lse - sinks[:, None])[..., None].to(output.dtype)
    return with_sinks


def causal_by_pytorch(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


@dataclasses.dataclass
class Function:
    plain: Callable
    by_flex: Callable  # makes it
    heads: int
    groups: int
    dim: int
    learned: dict = dataclasses.field(default_factory=dict)  # name: what a layer begins with
    by_section: bool = False
    sdpa: Callable | None = None

    def example_inputs(self):
        operands = [torch.randn(2, heads, 256, self.dim, dtype=torch.bfloat16) for heads in (self.heads, self.groups, self.groups)]
        section = [torch.sort(torch.randint(0, 4, (2, 256), dtype=torch.int32), -1).values] if self.by_section else []
        return [*operands, *(start() for start in self.learned.values()), *section]

    def by_kernels(self):
        import kernelwright
        return kernelwright.compile(self.plain, self.example_inputs(), target="sm_90a", backward=True)


FUNCTIONS = {
    "causal": Function(causal, causal_by_flex, 4, 2, 128, sdpa=causal_by_pytorch),
    "sections": Function(sections, sections_by_flex, 4, 2, 128, {"slopes": lambda: torch.exp2(-2.0 * torch.arange(1, 5))},
                         by_section=True),
    "window": Function(window, window_by_flex, 8, 2, 64, {"sinks": lambda: torch.zeros(8)}),
}
