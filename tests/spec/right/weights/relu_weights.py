# relu_weights: bf16, 4 heads, D 64; any B, M, N
#   weight  relu(s * 0.125) * (1 / N)
#   keep    j <= i
import torch


def relu_weights(q, k, v):
    s = (q @ k.mT * 0.125).tril()
    return torch.clamp(s, min=0) / k.shape[2] @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
