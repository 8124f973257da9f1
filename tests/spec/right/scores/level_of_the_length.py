# level_of_the_length: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125 - j % 5 * (N // 4096) * 0.125
#   softmax over j
import torch


def level_of_the_length(q, k, v):
    N = k.shape[2]
    j = torch.arange(N, device=q.device)
    return (q @ k.mT * 0.125 - 0.125 * (N >> 12) * (j % 5)).softmax(-1).to(v.dtype) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
