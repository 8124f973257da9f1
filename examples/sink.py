"""A learned sink (gpt-oss): each head has one more logit, whose share of the softmax goes nowhere.

The sink is a column beside the scores while the softmax runs and is dropped before the product
with v, so a query may attend to nothing. Causal, grouped heads.
"""

import torch


def sink(q, k, v, sinks):
    """q [B, 64, M, 64], k and v [B, 8, N, 64], sinks [64] (fp32); any B, M and N."""
    batch, heads, queries, dim = q.shape
    k = k.repeat_interleave(heads // k.shape[1], dim=1)
    v = v.repeat_interleave(heads // v.shape[1], dim=1)

    scores = torch.matmul(q, k.transpose(2, 3)) * dim**-0.5
    future = torch.ones(queries, k.shape[2], dtype=torch.bool, device=q.device).triu(1)
    scores = scores.masked_fill(future, float("-inf"))

    column = sinks.reshape(1, -1, 1, 1).expand(batch, -1, queries, -1)
    combined = torch.cat([scores, column], dim=-1)
    combined = combined - combined.max(dim=-1, keepdim=True).values
    weights = torch.softmax(combined, dim=-1)[..., :-1]
    return torch.matmul(weights.to(v.dtype), v)


def example_inputs():
    q = torch.randn(2, 64, 256, 64, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 256, 64, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 256, 64, dtype=torch.bfloat16)
    return q, k, v, torch.randn(64)
