# softmax_one_padded: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125
#   softmax over j
#   sink    0
import torch
import torch.nn.functional as F


def softmax_one_padded(q, k, v):
    return F.pad(q @ k.mT * 0.125, (0, 1)).softmax(-1)[..., :-1] @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
