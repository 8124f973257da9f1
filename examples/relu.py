"""ReLU attention (Wortsman et al., 2023), causal: weights relu(score) / n, without a softmax.

n is the number of keys that a query sees: i + 1 for query i.
"""

import torch


def relu(q, k, v):
    """q [B, 16, M, 128], k and v [B, 16, N, 128]; any B, M and N."""
    scores = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
    seen = torch.arange(1, q.shape[2] + 1, device=q.device)[:, None]
    weights = torch.relu(scores).tril() / seen
    return torch.einsum("bhij,bhjd->bhid", weights.to(v.dtype), v)


def example_inputs():
    q, k, v = (torch.randn(2, 16, 256, 128, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
