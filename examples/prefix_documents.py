"""Packed documents, each with a prefix that all of its tokens see: prefix-LM inside of every document.

`prefix_end[b, i]` is where the prefix of token i's document ends.
"""

import torch


def prefix_documents(q, k, v, document, prefix_end):
    """q [B, 32, S, 128], k and v [B, 8, S, 128], document and prefix_end [B, S] (int64); any B and S."""
    shared = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(shared, dim=1)
    v = v.repeat_interleave(shared, dim=1)

    position = torch.arange(q.shape[2], device=q.device)
    past = position[None, :] <= position[:, None]
    same = document[:, None, :, None] == document[:, None, None, :]
    prefix = position < prefix_end[:, None, :, None]
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    scores = scores.masked_fill(~(same & (past | prefix)), float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def example_inputs():
    q = torch.randn(2, 32, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    document = torch.repeat_interleave(torch.arange(3), torch.tensor([100, 60, 96]))
    prefix_end = torch.tensor([0, 100, 160])[document] + 40
    return q, k, v, document.expand(2, 256).contiguous(), prefix_end.expand(2, 256).contiguous()
