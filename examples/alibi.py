"""ALiBi (Press, Smith, Lewis, 2022): causal attention whose scores fall off with distance.

A head's slope times the distance to the key is added to the scaled score. Grouped heads are a
dimension of their own: five-dimensional tensors, in which k and v broadcast over the heads that
share them.
"""

import torch


def alibi(q, k, v, slopes):
    """q [B, 32, M, 128], k and v [B, 8, N, 128], slopes [32] (fp32); any B, M and N."""
    batch, heads, queries, dim = q.shape
    groups, keys = k.shape[1], k.shape[2]
    q = q.view(batch, groups, heads // groups, queries, dim)
    k, v = k.unsqueeze(2), v.unsqueeze(2)

    i = torch.arange(queries, device=q.device).unsqueeze(1)
    j = torch.arange(keys, device=q.device).unsqueeze(0)
    bias = slopes.view(groups, heads // groups, 1, 1) * (j - i)
    bias = bias + torch.zeros(queries, keys, device=q.device).masked_fill(j > i, -torch.inf)

    scores = torch.matmul(q * dim**-0.5, k.mT) + bias
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(v.dtype)
    return torch.matmul(weights, v).view(batch, heads, queries, dim)


def example_inputs():
    q = torch.randn(2, 32, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    slopes = 2.0 ** (-8.0 * torch.arange(1, 33) / 32)
    return q, k, v, slopes
