"""Speculative decoding with the tree's mask packed into words, as servers hand it to a kernel.

Bit j % 32 of `words[b, i, j // 32]` says whether draft token i of request b sees key j: the prompt, and its
own ancestors in the tree. A word holds 32 keys; bits past the last key mean nothing.
"""

import torch


def tree_bits(q, k, v, words):
    """q [B, 32, M, 128], k and v [B, 8, N, 128], words [B, M, ceil(N / 32)] (int32); any B, M, N."""
    shared = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(shared, dim=1)
    v = v.repeat_interleave(shared, dim=1)

    j = torch.arange(k.shape[2], device=q.device)
    keep = (words[:, None, :, j // 32] >> (j % 32)) & 1 == 1
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    return torch.softmax(scores.masked_fill(~keep, float("-inf")), dim=-1) @ v


def example_inputs():
    q = torch.randn(2, 32, 64, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 340, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 340, 128, dtype=torch.bfloat16)
    keep = torch.zeros(64, 352, dtype=torch.int64)
    keep[:, :276] = 1
    for node in range(64):
        at = node
        while at >= 0:
            keep[node, 276 + at] = 1
            at = (at - 1) // 2
    words = (keep.view(64, 11, 32) << torch.arange(32)).sum(-1).to(torch.int32)
    return q, k, v, words.expand(2, 64, 11).contiguous()
