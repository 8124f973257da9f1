# error spec.nan at line 8: puts -50.0 in the place of what is no number or infinite
import torch


def puts_a_number_for_infinity(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    scores = (q @ k.mT * 0.125).masked_fill(j > i, -torch.inf)
    return torch.nan_to_num(scores, neginf=-50.0).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
