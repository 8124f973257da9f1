"""Speculative decoding: draft tokens form a tree, and each sees the prompt and its own ancestors.

`ancestor[i, j]` says whether draft token j lies on the path from the root to token i (itself
included). The prompt's keys come first.
"""

import torch


def tree_mask(q, k, v, ancestor, prompt: int):
    """q [B, 32, M, 128], k and v [B, 8, N, 128], ancestor [M, N] (bool), prompt <= N; any B, M, N."""
    shared = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(shared, dim=1)
    v = v.repeat_interleave(shared, dim=1)

    j = torch.arange(k.shape[2], device=q.device)
    keep = (j < prompt)[None, :] | ancestor
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    return torch.softmax(scores.masked_fill(~keep, float("-inf")), dim=-1) @ v


def example_inputs():
    q = torch.randn(2, 32, 64, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 320, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 320, 128, dtype=torch.bfloat16)
    parents = (torch.arange(64) - 1) // 2
    ancestor = torch.zeros(64, 320, dtype=torch.bool)
    for node in range(64):
        at = node
        while at >= 0:
            ancestor[node, 256 + at] = True
            at = int(parents[at])
    return q, k, v, ancestor, 256
