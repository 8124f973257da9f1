# error spec.rounding at line 8: aten.gt compares reals that are computed of positions
import torch


def quotient_and_product(q, k, v):
    """In fp32 5 / 100 is more than 5 * 0.01; in fp64 it is not."""
    i, j = torch.arange(q.shape[2], device=q.device)[:, None], torch.arange(k.shape[2], device=q.device)
    scores = (q @ k.mT * 0.125).masked_fill(j / 100 > i * 0.01, -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
