"""A learned bias for each distance, clipped: relative position encodings as in T5 or Swin.

The table has an entry for each head and each distance from -R to R; keys further away share the
last one.
"""

import torch


def relative_bias(q, k, v, table):
    """q [B, 32, M, 128], k and v [B, 8, N, 128], table [32, 257] (fp32); any B, M and N."""
    batch, heads, queries, dim = q.shape
    groups, keys = k.shape[1], k.shape[2]
    k = k.repeat_interleave(heads // groups, dim=1)
    v = v.repeat_interleave(heads // groups, dim=1)

    reach = table.shape[1] // 2
    distance = torch.arange(keys, device=q.device) - torch.arange(queries, device=q.device)[:, None]
    bias = table[:, distance.clamp(-reach, reach) + reach]

    scores = torch.einsum("bhid,bhjd->bhij", q, k) * dim**-0.5 + bias
    return torch.softmax(scores, dim=-1).to(v.dtype) @ v


def example_inputs():
    q = torch.randn(2, 32, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    return q, k, v, torch.randn(32, 257)
