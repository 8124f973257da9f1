# error spec.not_attention at line 8: neither a softmax over the keys nor computed from one score
import torch


def divided_by_maximum(q, k, v):
    weights = torch.relu(q @ k.mT)
    weights = weights / weights.amax(-1, keepdim=True)
    return weights @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
