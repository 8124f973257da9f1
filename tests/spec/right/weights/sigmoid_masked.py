# sigmoid_masked: bf16, 4 heads, D 64; any B, M, N
#   weight  sigmoid(s * 0.125)
#   keep    j <= i
import torch


def sigmoid_masked(q, k, v):
    s = q @ k.mT * 0.125
    future = torch.arange(k.shape[2]) > torch.arange(q.shape[2])[:, None]
    return s.masked_fill(future, -1e9).sigmoid() @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
