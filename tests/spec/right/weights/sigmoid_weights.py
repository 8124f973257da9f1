# sigmoid_weights: bf16, 4 heads, D 64; any B, M, N
#   weight  sigmoid(s * 0.125 + bias[h])
#   keep    j <= i
import torch


def sigmoid_weights(q, k, v, bias):
    s = q @ k.mT * 0.125 + bias[:, None, None]
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
    return (torch.sigmoid(s) * seen).to(v.dtype) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(4)
