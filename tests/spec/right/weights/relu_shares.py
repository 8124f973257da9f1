# relu_shares: bf16, 4 heads, D 64; any B, M, N
#   weight  relu(s * 0.125)
#   divided by the sum over j
import torch


def relu_shares(q, k, v):
    weights = (q @ k.mT * 0.125).relu()
    return weights @ v / weights.sum(-1, keepdim=True)


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
