"""Forgetting Transformer (Lin et al., 2025): causal attention with a decay that the data chooses.

A forget gate f in (0, 1) for each head and position; a score loses the logarithms of all gates
between key and query. Their running sum `decay` is computed outside, and each score needs two of
its values.
"""

import torch


def fox_decay(q, k, v, decay):
    """q, k and v [B, 16, S, 128], decay [B, 16, S] (fp32, sums of log f); any B and S."""
    length = q.shape[2]
    scores = (q @ k.mT) * q.shape[-1] ** -0.5
    scores = scores + (decay[:, :, :, None] - decay[:, :, None, :])
    past = torch.ones(length, length, dtype=torch.bool, device=q.device).tril()
    return torch.softmax(scores.masked_fill(~past, float("-inf")), dim=-1).to(v.dtype) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 16, 256, 128, dtype=torch.bfloat16) for _ in range(3))
    gates = torch.sigmoid(torch.randn(2, 16, 256) + 4)
    return q, k, v, gates.log().cumsum(-1)
