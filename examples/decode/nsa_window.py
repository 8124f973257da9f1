"""Native sparse attention's window as it is decoded: a query sees the last 512 tokens of its sequence."""
import torch


def nsa_window(q, k, v, length):
    """q: [B, H, 1, D], k and v: [B, G, N, D], length: the tokens of each sequence, [B]."""
    token, length = torch.arange(k.shape[2], device=q.device), length[:, None, None, None]
    kept = (token < length) & (token >= length - 512)
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(group, 1).mT * q.shape[3] ** -0.5
    scores = scores.masked_fill(~kept, -torch.inf)
    return scores.softmax(-1) @ v.repeat_interleave(group, 1)


def example_inputs():
    q = torch.randn(2, 32, 1, 128, dtype=torch.bfloat16)
    k, v = (torch.randn(2, 2, 2048, 128, dtype=torch.bfloat16) for _ in range(2))
    return q, k, v, torch.tensor([2048, 1500], dtype=torch.int32)
