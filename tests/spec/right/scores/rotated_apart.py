# rotated_apart: bf16, 4 heads, D 64; any B, M, N
#   product s2 = q2[b, h, i, d] . k2[b, h, j, d], D 32
#   q of s2 row   q2[b, h, i, d] * w[d]
#   score   (s + s2) * 0.1
#   softmax over j
import torch


def rotated_apart(q, k, v, q2, k2, w):
    return ((q @ k.mT + (q2 * w) @ k2.mT) * 0.1).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    q2, k2 = (torch.randn(2, 4, 96, 32, dtype=torch.bfloat16) for _ in range(2))
    return q, k, v, q2, k2, torch.randn(32, dtype=torch.bfloat16)
