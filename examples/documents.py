"""Packed documents: several texts share one sequence, and none of them sees another.

Query i sees key j if j <= i and both belong to the same document. The documents' numbers come with
the data, in any order.
"""

import torch


def documents(q, k, v, document):
    """q [B, 32, S, 128], k and v [B, 8, S, 128], document [B, S] (int64); any B and S."""
    shared = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(shared, dim=1)
    v = v.repeat_interleave(shared, dim=1)

    position = torch.arange(q.shape[2], device=q.device)
    past = position[None, :] <= position[:, None]
    same = document[:, None, :, None] == document[:, None, None, :]

    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    scores = scores.masked_fill(~(past & same), float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def example_inputs():
    q = torch.randn(2, 32, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    lengths = torch.tensor([100, 60, 96])
    document = torch.repeat_interleave(torch.arange(3), lengths).expand(2, 256).contiguous()
    return q, k, v, document
