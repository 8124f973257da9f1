# halves_of_positions: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    not i * 0.5 + 3.5 < j * 0.5
#   softmax over j
import torch


def halves_of_positions(q, k, v):
    """Reals, but nothing is rounded: halves of whole numbers."""
    i, j = torch.arange(q.shape[2], device=q.device)[:, None], torch.arange(k.shape[2], device=q.device)
    scores = (q @ k.mT * 0.125).masked_fill(j / 2 > i * 0.5 + 3.5, -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
