# error spec.rounding at line 7: aten.to makes bfloat16
import torch


def distance_in_bf16(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    scores = (q @ k.mT).float() * 0.125 - (i - j).abs().to(torch.bfloat16) * 0.5
    return scores.softmax(-1).to(v.dtype) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
