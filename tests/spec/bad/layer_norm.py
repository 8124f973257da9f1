# error spec.operator at line 7: aten.layer_norm
import torch
import torch.nn.functional as F


def layer_norm(q, k, v):
    q = F.layer_norm(q, (64,))
    return (q @ k.mT).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
