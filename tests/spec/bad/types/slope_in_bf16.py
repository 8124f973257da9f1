# error spec.rounding at line 7: aten.full rounds to bfloat16 what is computed of positions, and what line 8 makes of it
import torch


def slope_in_bf16(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    slope = torch.full((1, 1), 0.3, dtype=q.dtype).float()
    return ((q @ k.mT).float() * 0.125 + slope * (j - i)).softmax(-1).to(v.dtype) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
