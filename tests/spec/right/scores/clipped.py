# clipped: bf16, 4 heads, D 64; any B, M, N
#   score   min(max(s * 0.125, -8), 8)
#   keep    j <= i
#   softmax over j
import torch


def clipped(q, k, v):
    s = torch.clip(q @ k.mT * 0.125, -8.0, 8.0)
    return s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1), -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
