# sum_of_masks: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    i - 41 < j and j <= i
#   softmax over j
import torch


def sum_of_masks(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    dropped = (j > i) + (j < i - 40)
    return (q @ k.mT * 0.125).masked_fill(dropped, -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
