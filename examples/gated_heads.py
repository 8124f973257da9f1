"""A learned gate for each head on the output, beside the log-sum-exp of the scores.

The log-sum-exp is what merging with other keys' attention needs; the gate does not touch it.
"""

import torch


def gated_heads(q, k, v, gates):
    """q [B, 16, M, 128], k and v [B, 16, N, 128], gates [16] (fp32); any B, M and N."""
    scores = (q @ k.transpose(-1, -2)).float() * q.shape[-1] ** -0.5
    out = torch.softmax(scores, dim=-1).to(v.dtype) @ v
    gated = out * torch.sigmoid(gates)[:, None, None].to(out.dtype)
    return gated, torch.logsumexp(scores, dim=-1)


def example_inputs():
    q, k, v = (torch.randn(2, 16, 256, 128, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(16)
