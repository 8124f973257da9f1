# error spec.rounding at line 7: aten.sub makes bfloat16 of what is computed of positions and may be -2147483647 to 2147483647
import torch


def distance_beside_a_score_in_bf16(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return (q @ k.mT * 0.125 - (i - j)).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
