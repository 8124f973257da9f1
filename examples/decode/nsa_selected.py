"""Native sparse attention's selected branch as it is decoded: for each key head, somebody else has chosen
eight blocks of 64 keys that its query heads look at.
"""
import torch


def nsa_selected(q, k, v, chosen):
    block = torch.arange(k.shape[2], device=q.device) // 64
    kept = chosen[..., 0, None] == block  # key heads, then queries, then keys
    for n in range(1, 8):
        kept = kept | (chosen[..., n, None] == block)
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(group, 1).mT * q.shape[3] ** -0.5
    scores = scores.masked_fill(~kept.repeat_interleave(group, 1), -torch.inf)
    return scores.softmax(-1) @ v.repeat_interleave(group, 1)


def example_inputs():
    q = torch.randn(2, 32, 1, 128, dtype=torch.bfloat16)
    k, v = (torch.randn(2, 2, 640, 128, dtype=torch.bfloat16) for _ in range(2))
    return q, k, v, torch.rand(2, 2, 1, 10).argsort(-1)[..., :8].int()
